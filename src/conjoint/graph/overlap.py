"""What the two ends of an edge share: neighbours, or features that are not zero.

Shared neighbours are exact among small neighbourhoods and sampled at hubs.
Each node of the graph draws one random number, and each node keeps at most `cap` of its neighbours: those
with the smallest numbers (a bottom-k sketch, Cohen and Kaplan 2007). Up to `cap` neighbours that is all of
them and counts are exact. Above it, those kept are a fair sample, the same of both ends below the smaller of
the first numbers left out. An edge costs at most 2 `cap`, whatever the degrees of its ends.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from ..errors import InputError
from .proximity import matrix_of
from .sparse import stored, to_scipy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TINY = 1e-12
AT_ONCE = 1 << 21  # stored neighbours looked at together
STEP = 1 << 17  # edges whose features are gathered at a time


def jaccard(edge_index: Tensor, num_nodes: int, pairs: Tensor, *, cap: int = 128, seed: int = 0) -> Tensor:
    """|N_i and N_j| / |N_i or N_j| of each pair, a node being its own neighbour. [2, pairs] -> [pairs]"""
    graph = matrix_of(edge_index, num_nodes)
    shared, left, right = shared_weight(graph, np.ones(num_nodes), pairs, cap, seed)
    return torch.from_numpy(shared / np.maximum(left + right - shared, TINY)).float()


def adamic_adar(
    edge_index: Tensor, num_nodes: int, pairs: Tensor, *, cap: int = 128, seed: int = 0
) -> Tensor:
    """Shared neighbours v counted 1 / log(1 + |N_v|), over the same sum of each end. [2, pairs] -> [pairs]

    A neighbour of all nodes tells no pair apart (Adamic and Adar 2003). The plain sum grows with the degrees;
    divided by sqrt(sum over N_i * sum over N_j) it is a weighted cosine of the two neighbourhoods.
    """
    graph = matrix_of(edge_index, num_nodes)
    weight = 1.0 / np.log1p(np.diff(graph.indptr))
    shared, left, right = shared_weight(graph, weight, pairs, cap, seed)
    return torch.from_numpy(shared / np.maximum(np.sqrt(left * right), TINY)).float()


def shared_weight(
    graph: sp.csr_array, weight: Floats, pairs: Tensor, cap: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Weights of the neighbours of both, left and right ends, over one sample at hubs. 3 x [pairs]"""
    if cap < 1:
        raise InputError(f"cap={cap}: keep 1 neighbour or more; 128 is usual")
    number = np.random.default_rng(seed).random(graph.shape[0])
    kept, limit = _smallest(graph, number, cap)
    i, j = pairs.cpu().numpy()
    ends = np.cumsum(np.diff(kept.indptr)[i] + np.diff(kept.indptr)[j])
    sums = np.zeros((3, len(i)))
    start = 0
    while start < len(i):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        left, right = kept[i[start:stop]], kept[j[start:stop]]
        below = np.minimum(limit[i[start:stop]], limit[j[start:stop]])
        for k, rows in enumerate((left.multiply(right).tocsr(), left, right)):
            row = np.repeat(np.arange(stop - start), np.diff(rows.indptr))
            counted = np.where(number[rows.indices] < below[row], weight[rows.indices], 0.0)
            sums[k, start:stop] = np.bincount(row, weights=counted, minlength=stop - start)
        start = stop
    return sums[0], sums[1], sums[2]


def _smallest(graph: sp.csr_array, number: Floats, cap: int) -> tuple[sp.csr_array, Floats]:
    """The `cap` neighbours of smallest number, and the first number that was left out (2 where none was)."""
    degree = np.diff(graph.indptr)
    limit = np.full(graph.shape[0], 2.0)
    keep = np.ones(graph.nnz, dtype=bool)
    for hub in np.flatnonzero(degree > cap):
        span = slice(graph.indptr[hub], graph.indptr[hub + 1])
        numbers = number[graph.indices[span]]
        limit[hub] = np.partition(numbers, cap)[cap]
        keep[span] = numbers < limit[hub]
    pointers = np.concatenate([[0], np.cumsum(keep)])[graph.indptr]
    indices = graph.indices[keep]
    return sp.csr_array((np.ones(len(indices)), indices, pointers), shape=graph.shape), limit


def edge_jaccard(x: Tensor, edge_index: Tensor) -> Tensor:
    """|F_i & F_j| / |F_i | F_j| of each edge, F_i the non-zero features of i; 0 without any. -> [edges]"""
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
    if int(torch.count_nonzero(stored(x))) == x.numel():
        raise InputError(
            "features: none is zero, so every two nodes have the same ones and Jaccard similarity does not "
            "tell them apart; choose a model without -jaccard"
        )
    return edge_jaccard(x, edge_index) >= threshold
