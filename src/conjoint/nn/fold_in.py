"""New nodes for a trained network, without training: each intervention gets rows for them from their edges.

The rows of known nodes stay as they are. Where rows were learnt, those of new nodes minimise the same loss
with everything else fixed (least squares); eigenvectors are extended by Nystrom's formula while the new nodes
are few; all other scores that come from the graph and its features are simply computed again.
"""

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.proximity import normalised, spectral_vectors, with_loops
from .cat import CAT
from .interventions import (
    EdgeScores,
    EmbeddingSimilarity,
    Intervention,
    LowRank,
    NormalisedExpression,
    NormalisedFactorization,
    SelfExpression,
    Several,
    SpectralSimilarity,
)
from .model import NodeModel
from .spread import Spread

Floats = npt.NDArray[np.float64]
ROUNDS = 50  # at most: new nodes that are linked to each other are solved for in turns
RIDGE = 1e-6  # of the mean diagonal: factors may be linearly dependent
FEW = 0.05  # with more new nodes than this share of the known ones, the old spectrum no longer fits the graph


def fold_in(model: NodeModel, before: Adjacency, after: Adjacency) -> NodeModel:
    """A copy of `model` for the graph `after`, whose first nodes are those of `before`, the one it knows."""
    if after.num_src < before.num_src:
        raise InputError(
            f"after: {after.num_src} nodes, but the network knows {before.num_src}; keep those in order"
        )
    folded = copy.deepcopy(model)
    if isinstance(folded, CAT | Spread) and folded.intervention is not None:
        folded.intervention = fold_in_intervention(folded.intervention, before, after)
    return folded


@torch.no_grad()
def fold_in_intervention(given: Intervention, before: Adjacency, after: Adjacency) -> Intervention:
    """The intervention with rows for the new nodes too; `given` itself may be changed."""
    if isinstance(given, Several):
        given.members = nn.ModuleList(fold_in_intervention(one, before, after) for one in given.each)
    elif isinstance(given, EdgeScores):
        raise InputError(
            "intervention: it holds one score for each edge of the training graph and none for new edges; "
            "write an Intervention with a score(adj, x, n_id) method"
        )
    elif isinstance(given, LowRank):
        rows = _solved(given, _matrix(given, after), before.num_src)
        given.factors = nn.Parameter(torch.cat([given.factors, rows.to(given.factors)]))
    elif isinstance(given, EmbeddingSimilarity):
        known = given.vectors.double().cpu().numpy()
        new = _averaged(_simple(after), known, before.num_src)
        given.vectors = torch.cat([given.vectors, F.normalize(_tensor(new).to(given.vectors), dim=1)])
    elif isinstance(given, SpectralSimilarity) and after.num_src <= (1.0 + FEW) * before.num_src:
        vectors = extended_spectrum(before, after, given.rank, given.seed)
        return EmbeddingSimilarity(vectors, float(given.temperature(torch.ones(()))))
    return given


def _matrix(given: LowRank, after: Adjacency) -> sp.csr_array:
    """What the factors explain: A, or S = D^-1/2 (A + I) D^-1/2."""
    if isinstance(given, NormalisedFactorization | NormalisedExpression):
        return sp.csr_array(normalised(with_loops(after.edge_index, after.num_src)), dtype=np.float64)
    return _simple(after)


def _simple(adj: Adjacency) -> sp.csr_array:
    row, col = adj.row[adj.simple].cpu().numpy(), adj.col[adj.simple].cpu().numpy()
    return sp.csr_array((np.ones(len(row)), (row, col)), shape=(adj.num_dst, adj.num_src))


def _solved(given: LowRank, matrix: sp.csr_array, known: int) -> Tensor:
    """Rows V_n of new nodes that minimise ||M_n - V_n B||^2 with B = V^T (MF) or V^T M (SC). [new, rank]"""
    new = sp.csr_array(matrix[known:])
    factors = given.factors.detach().double().cpu().numpy()
    factors = np.concatenate([factors, np.zeros((new.shape[0], factors.shape[1]))])
    expresses = isinstance(given, SelfExpression | NormalisedExpression)
    for _ in range(ROUNDS):
        basis = matrix.T @ factors if expresses else factors  # B^T: [nodes, rank]
        gram = basis.T @ basis
        gram += RIDGE * max(np.trace(gram) / len(gram), 1e-12) * np.eye(len(gram))
        rows = np.linalg.solve(gram, (new @ basis).T).T
        settled = np.allclose(rows, factors[known:], rtol=1e-4, atol=1e-6)
        factors[known:] = rows
        if settled:
            break
    return _tensor(factors[known:])


def _averaged(matrix: sp.csr_array, rows: Floats, known: int) -> Floats:
    """Means over a new node's neighbours; vectors from elsewhere come with no loss to minimise."""
    new = sp.csr_array(matrix[known:])
    count = np.maximum(np.diff(new.indptr), 1)[:, None]
    joined = np.concatenate([rows, np.zeros((new.shape[0], rows.shape[1]))])
    for _ in range(ROUNDS):
        joined[known:] = (new @ joined) / count
    return joined[known:]


def extended_spectrum(before: Adjacency, after: Adjacency, rank: int, seed: int = 0) -> Tensor:
    """The leading eigenvectors of the graph `before`, extended to the new nodes of `after`; rows of length 1.

    Nystrom: an eigenvector satisfies lambda u_n = sum_j S_nj u_j in every row n, so a new row follows from
    those of its neighbours: u_n = sum_(j != n) S_nj u_j / (lambda - S_nn).
    """
    known, nodes = before.num_src, after.num_src
    unit = spectral_vectors(before.edge_index, known, rank, seed).double().numpy()
    old = sp.csr_array(normalised(with_loops(before.edge_index, known)), dtype=np.float64)
    # Rows have length 1. The first column is known without computation, which gives their lengths back.
    part, degree = connected_components(old, directed=False)[1], np.diff(old.indptr)
    first = np.sqrt(degree / np.bincount(part, weights=degree)[part])
    vectors = unit * (first / np.maximum(unit[:, 0], 1e-12))[:, None]
    size = np.maximum((vectors**2).sum(axis=0), 1e-12)
    values = (vectors * (old @ vectors)).sum(axis=0) / size
    step = sp.csr_array(normalised(with_loops(after.edge_index, nodes)), dtype=np.float64)[known:]
    step = sp.csr_array(step)
    own = 1.0 / np.diff(step.indptr)
    joined = np.concatenate([vectors, np.zeros((nodes - known, vectors.shape[1]))])
    for _ in range(ROUNDS):
        others = step @ joined - own[:, None] * joined[known:]
        rows = others / np.maximum(values[None, :] - own[:, None], 0.1)
        settled = np.allclose(rows, joined[known:], rtol=1e-4, atol=1e-9)
        joined[known:] = rows
        if settled:
            break
    return F.normalize(_tensor(joined), dim=1).float()


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
