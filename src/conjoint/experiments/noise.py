"""Random damage to a graph. Each function returns a changed copy and draws from the given generator alone.

Edges are counted as undirected pairs without loops: a share of 1 added to a graph of m pairs makes 2m.
Labels, splits and the set of nodes are never touched.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from ..errors import InputError
from ..graph.sparse import to_csr, to_scipy

Integers = npt.NDArray[np.int64]


def add_edges(data: Data, share: float, rng: np.random.Generator) -> Data:
    """Join round(share * m) pairs that were not joined, uniformly at random, in both directions."""
    nodes, pairs = int(data.num_nodes or 0), _pairs(data)
    room = nodes * (nodes - 1) // 2 - len(pairs)
    wanted = round(share * len(pairs))
    if wanted > room // 2:
        raise InputError(f"add-edges share={share:g}: {wanted} new edges among {nodes} nodes; take fewer")
    if data.edge_weight is not None:
        raise InputError("add-edges: the graph has edge weights, and a made-up edge has none; leave them out")
    new = np.empty(0, dtype=np.int64)
    while len(new) < wanted:
        ends = np.sort(rng.integers(0, nodes, size=(2 * (wanted - len(new)) + 16, 2)), axis=1)
        drawn = ends[ends[:, 0] < ends[:, 1]] @ np.array([nodes, 1])
        drawn = np.concatenate([new, drawn[~np.isin(drawn, pairs)]])
        new = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:wanted]  # first come, first served
    low, high = new // nodes, new % nodes
    both = np.stack([np.concatenate([low, high]), np.concatenate([high, low])])
    made = data.clone()
    made.edge_index = torch.cat([data.edge_index, torch.from_numpy(both)], dim=1)
    return made


def drop_edges(data: Data, share: float, rng: np.random.Generator) -> Data:
    """Remove round(share * m) pairs, uniformly at random, both directions and parallel edges with them."""
    nodes, pairs = int(data.num_nodes or 0), _pairs(data)
    gone = rng.permutation(pairs)[: round(share * len(pairs))]
    keep = torch.from_numpy(~np.isin(_codes(data, nodes), gone))
    made = data.clone()
    made.edge_index = data.edge_index[:, keep]
    if data.edge_weight is not None:
        made.edge_weight = data.edge_weight[keep]
    return made


def move_features(data: Data, share: float, rng: np.random.Generator) -> Data:
    """Move round(share * z) of the z non-zero features, each with its value, to random columns of their node.

    A column that held something before takes none, so each moved feature is wrong and each node keeps as many
    non-zeros as it had.
    """
    matrix = sp.csr_matrix(to_scipy(data.x))
    matrix.eliminate_zeros()
    count, width = matrix.nnz, matrix.shape[1]
    if np.diff(matrix.indptr).max(initial=0) > width // 2:
        raise InputError("move-features: a node has more non-zero features than zeros; they must be sparse")
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)).astype(np.int64)
    place = row * width + matrix.indices
    moving = rng.permutation(count)[: round(share * count)]
    taken, left = np.sort(place), moving
    while len(left):
        target = row[left] * width + rng.integers(0, width, len(left))
        free = ~np.isin(target, taken)
        first = np.zeros(len(left), dtype=bool)
        first[np.unique(target, return_index=True)[1]] = True
        settled = free & first
        place[left[settled]] = target[settled]
        taken, left = np.union1d(taken, target[settled]), left[~settled]
    moved = sp.csr_matrix((matrix.data, (place // width, place % width)), shape=matrix.shape)
    made = data.clone()
    sparse = data.x.layout == torch.sparse_csr
    made.x = to_csr(moved) if sparse else torch.from_numpy(moved.toarray()).to(data.x.dtype)
    return made


def _pairs(data: Data) -> Integers:
    """Each undirected edge once, as low * nodes + high, sorted; loops left out."""
    nodes = int(data.num_nodes or 0)
    source, target = data.edge_index.numpy()
    return np.unique(_codes(data, nodes)[source != target])


def _codes(data: Data, nodes: int) -> Integers:
    low, high = np.sort(data.edge_index.numpy().astype(np.int64), axis=0)
    return low * nodes + high
