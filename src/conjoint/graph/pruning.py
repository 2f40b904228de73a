"""Which edges join nodes that have something in common: pruning a graph before a network sees it."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..errors import InputError
from .sparse import to_scipy

STEP = 1 << 17  # edges at a time: bounds the rows that are gathered


def edge_jaccard(x: Tensor, edge_index: Tensor) -> Tensor:
    """|F_i & F_j| / |F_i | F_j| of each edge, F_i being the non-zero features of node i. -> [edges]

    0 where neither end has any.
    """
    present = sp.csr_array(to_scipy(x) != 0, dtype=np.float32)
    size = present.sum(axis=1)
    source, target = edge_index.cpu().numpy()
    parts = []
    for start in range(0, len(source), STEP):
        i, j = source[start : start + STEP], target[start : start + STEP]
        shared = np.asarray((present[i] * present[j]).sum(axis=1))
        parts.append(shared / np.maximum(size[i] + size[j] - shared, 1.0))
    return torch.from_numpy(np.concatenate(parts) if parts else np.zeros(0)).float()


def alike(x: Tensor, edge_index: Tensor, threshold: float) -> Tensor:
    """Which edges have a Jaccard similarity of at least `threshold`. -> [edges] bool"""
    stored = x.values() if x.layout == torch.sparse_csr else x
    if int(torch.count_nonzero(stored)) == x.numel():
        raise InputError(
            "features: none is zero, so every two nodes have the same ones and Jaccard similarity says "
            "nothing; choose a model without -jaccard"
        )
    return edge_jaccard(x, edge_index) >= threshold
