"""What a node's place in the graph is like, whatever its features."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from .overlap import jaccard
from .proximity import matrix_of

ROLES = 6  # columns of `role_features`
PAGERANK_STEPS, DAMPING = 30, 0.85


def role_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Columns of mean 0 and deviation 1 that describe each node's place.

    Logarithm of the degree, its mean over neighbours and over theirs, logarithm of PageRank, mean Jaccard
    similarity with the neighbours and the logarithm of the sum of these. None of them turns round when nodes
    are added, as eigenvectors may. -> [nodes, 6]
    """
    adjacency = matrix_of(edge_index, num_nodes, loops=False, dtype=np.float64)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    mean = sp.diags_array(1.0 / np.maximum(degree, 1.0)) @ adjacency
    log_degree = np.log1p(degree)
    rank = np.full(num_nodes, 1.0 / num_nodes)
    for _ in range(PAGERANK_STEPS):
        rank = (1.0 - DAMPING) / num_nodes + DAMPING * (mean.T @ rank)
    pairs = adjacency.tocoo()
    alike: Any = np.zeros(num_nodes)
    if pairs.nnz:
        ends = torch.from_numpy(np.stack([pairs.row, pairs.col]).astype(np.int64))
        alike = np.bincount(pairs.row, jaccard(ends, num_nodes, ends).numpy(), minlength=num_nodes)
    near = mean @ log_degree
    columns = [log_degree, near, mean @ near, np.log(num_nodes * rank)]
    table = np.stack([*columns, alike / np.maximum(degree, 1.0), np.log1p(alike)], axis=1)
    table = (table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-6)
    return torch.from_numpy(np.ascontiguousarray(table, dtype=np.float32))
