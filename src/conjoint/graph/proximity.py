"""How close two nodes stand in the graph, as vectors whose cosine says so. O(|E| columns), never N x N.

All of it looks at the undirected simple graph with one loop per node, S = D^-1/2 (A + I) D^-1/2. Every
function is deterministic in its arguments.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits
from torch import Tensor

from ..errors import InputError

Floats = npt.NDArray[Any]  # float32 throughout
Product = Callable[[Floats], Floats]
# One thread and two sum in different orders: the same graph would get other last bits on another machine.
one_thread = threadpool_limits.wrap(limits=1)

SPARE = 10  # columns carried along and thrown away: those at the edge of the wanted ones converge last
ROUNDS, DEGREE = 3, 10


def with_loops(edge_index: Tensor, num_nodes: int) -> sp.csr_array:
    """A + I: undirected, parallel edges once, columns sorted."""
    source, target = edge_index.cpu().numpy()
    loops = np.arange(num_nodes)
    ends = (np.concatenate([source, target, loops]), np.concatenate([target, source, loops]))
    graph = sp.csr_array((np.ones(len(ends[0]), dtype=np.float32), ends), shape=(num_nodes, num_nodes))
    graph.sum_duplicates()
    graph.data[:] = 1.0
    return graph


def normalised(graph: sp.csr_array) -> sp.csr_array:
    """D^-1/2 A D^-1/2 of a graph in which every node has an edge, if only to itself."""
    root = np.sqrt(np.diff(graph.indptr)).astype(np.float32)
    row = np.repeat(root, np.diff(graph.indptr))
    return sp.csr_array((graph.data / (row * root[graph.indices]), graph.indices, graph.indptr), graph.shape)


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
    graph = with_loops(edge_index, num_nodes)
    parts, part = connected_components(graph, directed=False)
    volume = np.bincount(part, weights=np.diff(graph.indptr))
    trivial = np.sqrt(np.diff(graph.indptr) / volume[part]).astype(np.float32)
    indicator = sp.csr_array((trivial, (part, np.arange(num_nodes))), shape=(parts, num_nodes))
    step = normalised(graph)

    def times(columns: Floats) -> Floats:
        """S with the eigenvalue 1 moved to -1, where nobody looks for it."""
        return step @ columns - 2.0 * (indicator.T @ (indicator @ columns))

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
    before, now = basis, (times(basis) - centre * basis) / half
    for _ in range(DEGREE - 1):
        before, now = now, 2.0 * (times(now) - centre * now) / half - before
    return now


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
    step = normalised(with_loops(edge_index, num_nodes))
    signs = np.random.default_rng(seed).integers(0, 2, (num_nodes, rank), dtype=np.int8)
    walk: Any = np.where(signs == 1, np.float32(1), np.float32(-1))
    total = walk.copy()
    for _ in range(hops):
        walk = np.float32(1.0 - restart) * (step @ walk)
        total += walk
    return _unit_rows(total)


def _unit_rows(rows: Floats) -> Tensor:
    return torch.nn.functional.normalize(torch.from_numpy(np.ascontiguousarray(rows)), dim=1)
