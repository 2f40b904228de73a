"""Features averaged over a node's surroundings, in few dimensions."""

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import InputError
from .sparse import to_scipy


def smoothed_features(
    x: Tensor, edge_index: Tensor, num_nodes: int, *, hops: int = 2, rank: int = 128, seed: int = 0
) -> Tensor:
    """(D^-1/2 (A + I) D^-1/2)^hops X, rows of length 1, in at most `rank` dimensions. [nodes, <= rank]

    The leading right singular vectors of X (randomised SVD) carry its inner products, so cosines survive the
    reduction; smoothing `rank` columns costs O(hops |E| rank), whatever the width of X.
    """
    if hops < 0 or rank < 1:
        raise InputError(f"hops={hops}, rank={rank}: choose hops of 0 or more and a rank of 1 or more")
    reduced = _reduce(x, rank, seed)
    src, dst = edge_index.cpu().numpy()
    loops = np.arange(num_nodes)
    ends = (np.concatenate([dst, loops]), np.concatenate([src, loops]))
    walk = sp.csr_array((np.ones(len(ends[0]), dtype=np.float32), ends), shape=(num_nodes, num_nodes))
    walk.data[:] = 1.0  # parallel edges were added up
    scale = sp.diags_array((1.0 / np.sqrt(walk.sum(axis=1))).astype(np.float32))
    walk = scale @ walk @ scale
    for _ in range(hops):
        reduced = walk @ reduced
    return F.normalize(torch.from_numpy(np.ascontiguousarray(reduced)).to(torch.float32), dim=1)


def _reduce(x: Tensor, rank: int, seed: int) -> np.ndarray:
    from sklearn.utils.extmath import randomized_svd

    if min(x.shape) <= rank:
        return x.to_dense().numpy() if x.layout != torch.strided else x.numpy()
    matrix = to_scipy(x) if x.layout == torch.sparse_csr else x.numpy()
    _, _, right = randomized_svd(matrix, rank, n_iter=4, random_state=seed)
    return np.asarray(matrix @ right.T, dtype=np.float32)
