"""Which rows of a later X are nodes that the network was trained on."""

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_CHUNK = 4096


def row_keys(x: Any) -> list[bytes]:
    """A short digest per row, the same for a dense and a sparse row of equal numbers."""
    keys: list[bytes] = []
    for start in range(0, x.shape[0], _CHUNK):
        part = sp.csr_array(x[start : start + _CHUNK])
        part.sum_duplicates()
        part.eliminate_zeros()
        for begin, end in zip(part.indptr[:-1], part.indptr[1:], strict=True):
            digest = blake2b(part.indices[begin:end].astype(np.int64).tobytes(), digest_size=16)
            digest.update(part.data[begin:end].astype(np.float32).tobytes())
            keys.append(digest.digest())
    return keys


class KnownRows:
    """Finds training nodes by their features."""

    def __init__(self, x: Any) -> None:
        self.keys = row_keys(x)
        self.nodes: dict[bytes, list[int]] = {}
        for node, key in enumerate(self.keys):
            self.nodes.setdefault(key, []).append(node)

    def is_all(self, keys: list[bytes]) -> bool:
        """Whether these are the training nodes themselves, in their order."""
        return keys == self.keys

    def answer(
        self, keys: list[bytes], of_nodes: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Rows of `of_nodes` for the keys that are known, and which are; 0 for the others.

        Nodes with equal features cannot be told apart by them: they share the mean of their rows.
        """
        out = np.zeros((len(keys), of_nodes.shape[1]), dtype=of_nodes.dtype)
        known = np.zeros(len(keys), dtype=bool)
        for row, key in enumerate(keys):
            nodes = self.nodes.get(key)
            if nodes is not None:
                out[row] = of_nodes[nodes[0]] if len(nodes) == 1 else of_nodes[nodes].mean(axis=0)
                known[row] = True
        return out, known
