"""New nodes for a trained network, without training: each intervention gets rows for them from their edges.

The rows of known nodes stay as they are. Where the graph `after` has no edge from a new node to a known one,
all that the layers compute for known nodes stays as it is too.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.proximity import Floats, matrix_of, normalised, spectral_vectors
from .ensemble import Ensemble
from .interventions import EdgeScores, EmbeddingSimilarity, Intervention, LowRank, Several, SpectralSimilarity
from .model import NodeModel, ScoredModel

Rows = Literal["fitted", "mean"]
ROUNDS = 50  # at most: new nodes that are linked to each other are solved for in turns
RIDGE = 1e-6  # of the mean diagonal: factors may be linearly dependent
FEW = 0.05  # with more new nodes than this share of the known ones, the old spectrum no longer fits the graph


def with_new_nodes(model: NodeModel, before: Adjacency, after: Adjacency, rows: Rows = "fitted") -> NodeModel:
    """A copy of `model` for the graph `after`, whose first nodes are those of `before`, the one it knows.

    Args:
        rows: what an intervention with a row per node gets for a new one. "fitted": where rows were learnt,
            the one that minimises the same loss with everything else fixed; eigenvectors are extended by
            Nystrom's formula while the new nodes are few; vectors from elsewhere are averaged over the
            neighbours. "mean": of the known nodes that it receives from, by edge weight. All other scores
            are computed again from the graph and its features.
    """
    if after.num_src < before.num_src:
        raise InputError(
            f"after: {after.num_src} nodes, but the network knows {before.num_src}; keep those in order"
        )
    made = copy.deepcopy(model)
    if isinstance(made, Ensemble):
        made.members = nn.ModuleList(with_new_nodes(one, before, after, rows) for _, one in made.each())
    elif isinstance(made, ScoredModel) and made.intervention is not None:
        made.intervention = extended(made.intervention, before, after, rows)
    return made


@torch.no_grad()
def extended(given: Intervention, before: Adjacency, after: Adjacency, rows: Rows = "fitted") -> Intervention:
    """The intervention with rows for the new nodes too; `given` itself may be changed."""
    known = before.num_src
    if isinstance(given, Several):
        given.members = nn.ModuleList(extended(one, before, after, rows) for one in given.each)
    elif isinstance(given, EdgeScores):
        raise InputError(
            "intervention: it holds one score for each edge of the training graph and none for new edges; "
            "write an Intervention with a score(adj, x, n_id) method"
        )
    elif isinstance(given, LowRank):
        new = _mean(given.factors, after) if rows == "mean" else _solved(given, after)
        given.factors = nn.Parameter(torch.cat([given.factors, new.to(given.factors)]))
    elif isinstance(given, EmbeddingSimilarity):
        new = _mean(given.vectors, after) if rows == "mean" else _averaged(given.vectors, after)
        given.vectors = torch.cat([given.vectors, F.normalize(new.to(given.vectors), dim=1)])
    elif isinstance(given, SpectralSimilarity) and rows == "fitted" and after.num_src <= (1.0 + FEW) * known:
        vectors = extended_spectrum(before, after, given.rank, given.seed)
        return EmbeddingSimilarity(vectors, float(given.temperature(torch.ones(()))))
    return given


def _mean(held: Tensor, after: Adjacency) -> Tensor:
    """Weighted means over the known sources of new nodes; zeros, which prefer none, without any."""
    known = held.size(0)
    into = (after.row >= known) & (after.col < known)
    weight = held.new_ones(after.num_entries) if after.log_weight is None else after.log_weight.exp()
    target, weight = after.row[into] - known, weight[into].to(held.dtype)
    parts = weight.unsqueeze(1) * held[after.col[into]]
    total = held.new_zeros(after.num_dst - known, held.size(1)).index_add(0, target, parts)
    mass = weight.new_zeros(after.num_dst - known).index_add(0, target, weight)
    return total / torch.where(mass > 0, mass, 1.0).unsqueeze(1)


def _simple(adj: Adjacency) -> sp.csr_array:
    """The paper's A: no self-loops, parallel edges once; rows are targets."""
    return matrix_of(adj.edge_index, adj.num_src, loops=False, undirected=False, dtype=np.float64)


def _normalised(adj: Adjacency) -> sp.csr_array:
    """S = D^-1/2 (A + I) D^-1/2"""
    return normalised(matrix_of(adj.edge_index, adj.num_src)).astype(np.float64)


def _in_turns(
    known: Floats, count: int, rows_of: Callable[[Floats], Floats], rtol: float = 0.0, atol: float = 0.0
) -> Tensor:
    """All rows, the last `count` of which follow from each other by `rows_of`, until they settle."""
    joined = np.concatenate([known, np.zeros((count, known.shape[1]))])
    for _ in range(ROUNDS):
        rows = rows_of(joined)
        settled = np.allclose(rows, joined[len(known) :], rtol=rtol, atol=atol)
        joined[len(known) :] = rows
        if settled:
            break
    return torch.from_numpy(joined)


def _solved(given: LowRank, after: Adjacency) -> Tensor:
    """Rows V_n of new nodes that minimise ||M_n - V_n B||^2 with B = V^T (MF) or V^T M (SC). [new, rank]

    M is what the factors explain: A, or S.
    """
    matrix = _normalised(after) if given.normalised else _simple(after)
    factors = given.factors.detach().double().cpu().numpy()
    new = sp.csr_array(matrix[len(factors) :])

    def rows_of(joined: Floats) -> Floats:
        basis = matrix.T @ joined if given.expresses else joined  # B^T: [nodes, rank]
        gram = basis.T @ basis
        gram += RIDGE * max(np.trace(gram) / len(gram), 1e-12) * np.eye(len(gram))
        return np.linalg.solve(gram, (new @ basis).T).T

    return _in_turns(factors, new.shape[0], rows_of, rtol=1e-4, atol=1e-6)[len(factors) :]


def _averaged(vectors: Tensor, after: Adjacency) -> Tensor:
    """Means over a new node's neighbours, new ones included; vectors come with no loss to minimise."""
    new = sp.csr_array(_simple(after)[len(vectors) :])
    count = np.maximum(np.diff(new.indptr), 1)[:, None]
    known: Any = vectors.double().cpu().numpy()
    return _in_turns(known, new.shape[0], lambda joined: (new @ joined) / count)[len(vectors) :]


def extended_spectrum(before: Adjacency, after: Adjacency, rank: int, seed: int = 0) -> Tensor:
    """The leading eigenvectors of the graph `before`, extended to the new nodes of `after`; rows of length 1.

    Nystrom: an eigenvector satisfies lambda u_n = sum_j S_nj u_j in every row n, so a new row follows from
    those of its neighbours: u_n = sum_(j != n) S_nj u_j / (lambda - S_nn).
    """
    known = before.num_src
    unit = spectral_vectors(before.edge_index, known, rank, seed).double().numpy()
    old = _normalised(before)
    # Rows have length 1. The first column is known without computation, which gives their lengths back.
    part, degree = connected_components(old, directed=False)[1], np.diff(old.indptr)
    first = np.sqrt(degree / np.bincount(part, weights=degree)[part])
    vectors = unit * (first / np.maximum(unit[:, 0], 1e-12))[:, None]
    size = np.maximum((vectors**2).sum(axis=0), 1e-12)
    values = (vectors * (old @ vectors)).sum(axis=0) / size
    step = sp.csr_array(_normalised(after)[known:])
    own = 1.0 / np.diff(step.indptr)

    def rows_of(joined: Floats) -> Floats:
        others = step @ joined - own[:, None] * joined[known:]
        return others / np.maximum(values[None, :] - own[:, None], 0.1)

    joined = _in_turns(vectors, after.num_src - known, rows_of, rtol=1e-4, atol=1e-9)
    return F.normalize(joined, dim=1).float()
