"""Which rows of a later X are nodes that the network was trained on."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
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


def means_over_equals(asked: Sequence[bytes], known: Sequence[bytes]) -> sp.csr_array:
    """A matrix that gives each row the mean over the known rows of the same key. [asked, known]

    Nodes with equal features cannot be told apart by them. A row without any such node is empty.
    """
    nodes: dict[bytes, list[int]] = {}
    for node, key in enumerate(known):
        nodes.setdefault(key, []).append(node)
    found = [nodes.get(key, []) for key in asked]
    count = np.array([len(one) for one in found])
    share = np.repeat(1.0 / np.maximum(count, 1), count).astype(np.float32)
    column = np.array([node for one in found for node in one], dtype=np.int64)
    return sp.csr_array((share, column, np.append(0, count.cumsum())), shape=(len(asked), len(known)))
