"""Features averaged over a node's surroundings, in few dimensions."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from threadpoolctl import threadpool_limits
from torch import Tensor

from ..errors import InputError
from .sparse import to_scipy

Vectors = npt.NDArray[np.float32]

# One thread and two sum in different orders: the same graph would get other last bits on another machine.
one_thread = threadpool_limits.wrap(limits=1)


@one_thread
def smoothed_features(
    x: Tensor,
    edge_index: Tensor,
    num_nodes: int,
    *,
    hops: int = 2,
    rank: int = 128,
    seed: int = 0,
    centre: bool = False,
) -> Tensor:
    """(D^-1/2 (A + I) D^-1/2)^hops X, rows of length 1, in at most `rank` dimensions. [nodes, <= rank]

    The leading right singular vectors of X carry its inner products, so cosines survive the reduction;
    smoothing `rank` columns costs O(hops |E| rank), whatever the width of X. `centre` first brings the rows
    of X to length 1 and takes their mean away: what all nodes share says nothing about a pair of them.
    """
    if hops < 0 or rank < 1:
        raise InputError(f"hops={hops}, rank={rank}: choose hops of 0 or more and a rank of 1 or more")
    vectors = reduced_features(x, rank=rank, seed=seed, centre=centre)
    return torch.from_numpy(smooth(vectors, edge_index, num_nodes, hops))


@one_thread
def reduced_features(x: Tensor, *, rank: int, seed: int = 0, centre: bool = False) -> Vectors:
    """X in at most `rank` dimensions, see `smoothed_features`. [nodes, <= rank]"""
    matrix = _unit(x) if centre else to_scipy(x) if x.layout == torch.sparse_csr else x.detach().cpu().numpy()
    reduced = _reduce(matrix, rank, seed)
    return reduced - reduced.mean(axis=0, dtype=np.float64).astype(np.float32) if centre else reduced


@one_thread
def smooth(vectors: Vectors, edge_index: Tensor, num_nodes: int, hops: int) -> Vectors:
    """(D^-1/2 (A + I) D^-1/2)^hops times the vectors, rows of length 1. Parallel edges count once."""
    src, dst = edge_index.cpu().numpy()
    loops = np.arange(num_nodes)
    ends = (np.concatenate([dst, loops]), np.concatenate([src, loops]))
    walk = sp.csr_array((np.ones(len(ends[0]), dtype=np.float32), ends), shape=(num_nodes, num_nodes))
    walk.data[:] = 1.0  # parallel edges were added up
    scale = sp.diags_array((1.0 / np.sqrt(walk.sum(axis=1))).astype(np.float32))
    walk = scale @ walk @ scale
    for _ in range(hops):
        vectors = walk @ vectors
    return F.normalize(torch.from_numpy(np.ascontiguousarray(vectors)).to(torch.float32), dim=1).numpy()


def _unit(x: Tensor) -> Any:
    """Rows of length 1, sparse as SciPy's and dense as NumPy's; zero rows stay."""
    if x.layout != torch.sparse_csr:
        return F.normalize(x.detach().cpu(), dim=1).numpy()
    matrix = to_scipy(x)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    length[length == 0.0] = 1.0
    return sp.csr_array(sp.diags_array(1.0 / length) @ matrix)


def _reduce(matrix: Any, rank: int, seed: int) -> Vectors:
    """X V with V an orthonormal basis of (nearly) the leading right singular vectors, by subspace iteration.

    Which basis of that space it is does not matter to cosines, so no SVD is needed.
    """
    if min(matrix.shape) <= rank:
        return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)
    basis = np.random.default_rng(seed).standard_normal((matrix.shape[1], rank), dtype=np.float32)
    for _ in range(2):
        basis = np.linalg.qr(matrix.T @ (matrix @ basis))[0]
    return np.asarray(matrix @ basis, dtype=np.float32)
