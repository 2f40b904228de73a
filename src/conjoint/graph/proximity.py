"""Vectors of nodes whose cosine says how close two nodes are, by the edges alone or by smoothed features.

All of it takes O(|E| columns), never N x N, and is deterministic in its arguments.
S = D^-1/2 (A + I) D^-1/2 is the normalised adjacency of the simple graph with one loop per node.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits
from torch import Tensor

from ..errors import InputError
from .sparse import is_sparse, to_scipy

Floats = npt.NDArray[Any]  # float32 throughout
Product = Callable[[Floats], Floats]
# One thread and two sum in different orders: the same graph would get other last bits on another machine.
one_thread = threadpool_limits.wrap(limits=1)

SPARE = 10  # columns carried along and thrown away: those at the edge of the wanted ones converge last
ROUNDS, DEGREE = 3, 10


def matrix_of(
    edge_index: Tensor,
    num_nodes: int,
    *,
    loops: bool = True,
    undirected: bool = True,
    dtype: Any = np.float32,
) -> sp.csr_array:
    """The 0/1 matrix A + I, or A without loops. Rows are targets, columns sorted, parallel edges once."""
    source, target = edge_index.cpu().numpy()
    if undirected:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    if loops:
        source, target = (np.concatenate([end, np.arange(num_nodes)]) for end in (source, target))
    else:
        source, target = source[source != target], target[source != target]
    ones = np.ones(len(source), dtype=dtype)
    graph = sp.csr_array((ones, (target, source)), shape=(num_nodes, num_nodes))
    graph.sum_duplicates()
    graph.data[:] = 1.0
    return graph


def scaled(graph: sp.csr_array, degree: Floats) -> sp.csr_array:
    """D^-1/2 A D^-1/2; a node of degree 0 has a row and a column of zeros."""
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(len(degree)), where=degree > 0)
    scale = sp.diags_array(root.astype(graph.dtype))
    return (scale @ graph @ scale).tocsr()


def normalised(graph: sp.csr_array) -> sp.csr_array:
    """S of a graph in which every node has an edge, as `scaled` but with other last bits."""
    degree = np.diff(graph.indptr)
    root = np.sqrt(degree).astype(np.float32)
    values = graph.data / (np.repeat(root, degree) * root[graph.indices])
    return sp.csr_array((values, graph.indices, graph.indptr), graph.shape)


@one_thread
def spectral_vectors(edge_index: Tensor, num_nodes: int, k: int = 64, seed: int = 0) -> Tensor:
    """The leading eigenvectors of S, rows of length 1. -> [nodes, k]

    The eigenvalue 1 comes once per connected component, more often than `k` times on many graphs, and its
    vectors are zero outside their component. They are known without computation and share the first column;
    the `k` - 1 next ones follow, largest eigenvalue first. They are found by subspace iteration with
    Chebyshev polynomials (Zhou, Saad, Tiago and Chelikowsky, 2006): about 30 products of S with `k` columns.
    """
    if k < 2:
        raise InputError(f"rank={k}: choose 2 eigenvectors or more")
    graph = matrix_of(edge_index, num_nodes)
    parts, part = connected_components(graph, directed=False)
    volume = np.bincount(part, weights=np.diff(graph.indptr))
    trivial = np.sqrt(np.diff(graph.indptr) / volume[part]).astype(np.float32)
    indicator = sp.csr_array((trivial, (part, np.arange(num_nodes))), shape=(parts, num_nodes))
    step = normalised(graph)

    def times(columns: Floats) -> Floats:
        """S with the eigenvalue 1 moved to -1, the lowest that S can have."""
        found, known = step @ columns, indicator.T @ (indicator @ columns)
        known *= 2.0
        found -= known
        return found

    found = np.zeros((num_nodes, k), dtype=np.float32)
    found[:, 0] = trivial
    count = min(k - 1, num_nodes - parts)  # there are no more others
    if num_nodes <= 4 * (count + SPARE):  # an iteration needs room; so small a matrix may be dense
        vectors = np.linalg.eigh(times(np.eye(num_nodes, dtype=np.float32)))[1][:, ::-1]
    else:
        generator = np.random.default_rng(seed)
        start = generator.standard_normal((num_nodes, count + SPARE), dtype=np.float32)
        vectors = _leading(times, start - indicator.T @ (indicator @ start))
    found[:, 1 : 1 + count] = vectors[:, :count]
    return _unit_rows(found)


def _leading(times: Product, basis: Floats) -> Floats:
    """Eigenvectors of the largest eigenvalues, largest first."""
    values, basis = _rayleigh_ritz(times, times(times(basis)))
    for _ in range(ROUNDS):
        values, basis = _rayleigh_ritz(times, _chebyshev(times, basis, float(values[-1])))
    return basis


def _chebyshev(times: Product, basis: Floats, cut: float) -> Floats:
    """T_DEGREE of S with [-1, cut] mapped to [-1, 1]: stays small there and grows fast above `cut`."""
    cut = min(max(cut, -0.9), 0.999)
    half, centre = np.float32((cut + 1.0) / 2.0), np.float32((cut - 1.0) / 2.0)
    before, now = basis, _shifted(times, basis, centre)
    now /= half
    for _ in range(DEGREE - 1):
        after = _shifted(times, now, centre)
        after *= 2.0
        after /= half
        after -= before
        before, now = now, after
    return now


def _shifted(times: Product, columns: Floats, centre: np.float32) -> Floats:
    """S V - centre V; in place, as are the steps that follow: fresh memory takes as long as the sums."""
    found = times(columns)
    found -= centre * columns
    return found


def _rayleigh_ritz(times: Product, basis: Floats) -> tuple[Floats, Floats]:
    basis = np.linalg.qr(basis)[0]
    inner = basis.T @ times(basis)
    values, inside = np.linalg.eigh((inner + inner.T) / 2)
    return values[::-1], basis @ inside[:, ::-1]


def diffusion_vectors(
    edge_index: Tensor,
    num_nodes: int,
    *,
    restart: float = 0.15,
    hops: int = 10,
    rank: int = 128,
    seed: int = 0,
) -> Tensor:
    """Rows of personalised PageRank, sketched: their cosines are those of whole rows, nearly. [nodes, rank]

    Row i of P = restart * sum_t (1 - restart)^t S^t, t = 0 .. `hops`, says where walks from i end. P is N x N
    and dense, but P R with random signs R of `rank` columns keeps inner products (Johnson and Lindenstrauss):
    a cosine is off by about 1 / sqrt(rank) for rows far apart, less for rows alike.
    """
    if not 0.0 < restart < 1.0 or hops < 1 or rank < 1:
        raise InputError(
            f"restart={restart}, hops={hops}, rank={rank}: choose a restart inside (0, 1), the others from 1"
        )
    step = normalised(matrix_of(edge_index, num_nodes))
    signs = np.random.default_rng(seed).integers(0, 2, (num_nodes, rank), dtype=np.int8)
    walk: Any = np.where(signs == 1, np.float32(1), np.float32(-1))
    total = walk.copy()
    for _ in range(hops):
        walk = np.float32(1.0 - restart) * (step @ walk)
        total += walk
    return _unit_rows(total)


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
    of X to length 1 and takes their mean away, as what all nodes share does not tell pairs apart.
    """
    if hops < 0 or rank < 1:
        raise InputError(f"hops={hops}, rank={rank}: choose hops of 0 or more and a rank of 1 or more")
    reduced = reduced_features(x, rank=rank, seed=seed, centre=centre)
    return torch.from_numpy(smooth(reduced, edge_index, num_nodes, hops))


@one_thread
def reduced_features(x: Tensor, *, rank: int, seed: int = 0, centre: bool = False) -> Floats:
    """X in at most `rank` dimensions, see `smoothed_features`. [nodes, <= rank]"""
    matrix = _unit(x) if centre else to_scipy(x) if is_sparse(x) else x.detach().cpu().numpy()
    reduced = _reduce(matrix, rank, seed)
    return reduced - reduced.mean(axis=0, dtype=np.float64).astype(np.float32) if centre else reduced


@one_thread
def smooth(vectors: Floats, edge_index: Tensor, num_nodes: int, hops: int) -> Floats:
    """(D^-1/2 (A + I) D^-1/2)^hops times the vectors, rows of length 1. Parallel edges count once."""
    walk = matrix_of(edge_index, num_nodes, undirected=False)
    walk = scaled(walk, walk.sum(axis=1))
    for _ in range(hops):
        vectors = walk @ vectors
    return _unit_rows(vectors.astype(np.float32, copy=False)).numpy()


def _unit(x: Tensor) -> Any:
    """Rows of length 1, sparse as SciPy's and dense as NumPy's; zero rows stay."""
    if not is_sparse(x):
        return F.normalize(x.detach().cpu(), dim=1).numpy()
    matrix = to_scipy(x)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    length[length == 0.0] = 1.0
    return sp.csr_array(sp.diags_array(1.0 / length) @ matrix)


@one_thread
def reducing_basis(x: Tensor, *, rank: int, seed: int = 0) -> Floats:
    """The leading right singular vectors of X, in order; zeros where there are fewer. [features, rank]"""
    matrix: Any = to_scipy(x) if is_sparse(x) else x.detach().cpu().numpy()
    basis = _basis(matrix, min(rank, *matrix.shape), seed)
    within = np.linalg.svd(np.asarray(matrix @ basis), full_matrices=False)[2]
    turned = np.zeros((matrix.shape[1], rank), dtype=np.float32)
    turned[:, : len(within)] = basis @ within.T
    return turned


def _reduce(matrix: Any, rank: int, seed: int) -> Floats:
    """X V, V an orthonormal basis of nearly the leading right singular vectors: cosines need no SVD."""
    if min(matrix.shape) <= rank:
        return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)
    return np.asarray(matrix @ _basis(matrix, rank, seed), dtype=np.float32)


def _basis(matrix: Any, rank: int, seed: int) -> Floats:
    """By subspace iteration. [features, rank]"""
    basis = np.random.default_rng(seed).standard_normal((matrix.shape[1], rank), dtype=np.float32)
    for _ in range(2):
        basis = np.linalg.qr(matrix.T @ (matrix @ basis))[0]
    return basis


def _unit_rows(rows: Floats) -> Tensor:
    return F.normalize(torch.from_numpy(np.ascontiguousarray(rows)), dim=1)
