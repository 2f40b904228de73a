"""One short string that tells whether two graphs are the same."""

import hashlib

import numpy as np
from torch_geometric.data import Data

from conjoint.graph.sparse import to_csr, to_scipy


def fingerprint(data: Data) -> str:
    """SHA-256 over features (dense or sparse alike), edges, weights, labels, ids and class names.

    A graph from a folder knows its own, which was taken when the folder was made.
    """
    known = getattr(data, "fingerprint", None)
    if isinstance(known, str):
        return known
    digest = hashlib.sha256()

    def add(name: str, array: np.ndarray) -> None:
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())

    if data.x is not None:
        x = to_csr(to_scipy(data.x))  # one form for both layouts: sorted, without stored zeros
        add("size", np.array(x.shape))
        add("crow", x.crow_indices().numpy())
        add("col", x.col_indices().numpy())
        add("values", x.values().numpy())
    add("edge_index", data.edge_index.cpu().numpy())
    weight = getattr(data, "edge_weight", None)
    if weight is not None:
        add("edge_weight", weight.cpu().numpy())
    if data.y is not None:
        add("y", data.y.cpu().numpy())
    ids = getattr(data, "node_ids", None)
    if ids is not None:
        add("node_ids", np.asarray(ids))
    digest.update("\n".join(getattr(data, "class_names", None) or []).encode())
    return digest.hexdigest()
