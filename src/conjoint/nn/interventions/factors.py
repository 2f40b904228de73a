"""Interventions learnt as a low-rank factor V of the adjacency, jointly with the network.

The losses are sums over all N x N pairs. Expanding the squares leaves one pass over the edges and one small
Gram matrix, so they cost O(|E| rank + N rank^2) and are exact.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import InputError
from ...graph.adjacency import Adjacency
from ...recording import recording
from .. import ops
from ..attention import FactorStructure, Structure
from ..layers import glorot
from .base import Intervention, Temperature


class LowRank(Intervention):
    """C_ij = <V_i, V_j> of factors V of [num_nodes, rank], one row per node of the whole graph."""

    expresses = False  # the loss is that of SC, else of MF
    normalised = False  # V explains S, else A

    def __init__(self, num_nodes: int, rank: int) -> None:
        super().__init__()
        if num_nodes < 1:
            raise InputError(f"num_nodes: {num_nodes}; an intervention needs a graph with at least one node")
        if rank < 1:
            raise InputError(f"rank: {rank}; choose 1 or more (the number of classes is a good start)")
        self.factors = nn.Parameter(torch.empty(num_nodes, rank))
        glorot(self.factors)

    def reset_parameters(self) -> None:
        glorot(self.factors)
        super().reset_parameters()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        return ops.edge_dot(adj, ops.targets(adj, factors), factors)

    def structure(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Structure:
        if adj.log_weight is not None or type(self).score is not LowRank.score:
            return super().structure(adj, x, n_id)
        made = FactorStructure(adj, self.rows(adj, n_id))
        return Structure(adj, *made.both) if recording() else made  # what is recorded is not kept

    def rows(self, adj: Adjacency, n_id: Tensor | None) -> Tensor:
        """The rows of V that belong to the sources of `adj`. [num_src, rank]"""
        if n_id is not None:
            return self.factors.index_select(0, n_id[: adj.num_src])
        if adj.num_src != adj.num_dst:
            raise self.of_one_kind(adj)
        if adj.num_src != self.factors.size(0):
            raise InputError(
                f"intervention: {type(self).__name__} was made for {self.factors.size(0)} nodes, but this "
                f"graph has {adj.num_src}; make it with num_nodes={adj.num_src}, or pass n_id for a part of "
                "its graph"
            )
        return self.factors

    def extra_repr(self) -> str:
        return f"num_nodes={self.factors.size(0)}, rank={self.factors.size(1)}"


class MatrixFactorization(LowRank):
    """Eq. 2 (MF): VVᵀ approximates the adjacency. C_ij is high within a cluster.

    `L = ‖A − VVᵀ‖² = ‖A‖² − 2 Σ_ij A_ij C_ij + ‖VᵀV‖²`

    A has no self-loops and counts parallel edges once.
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        if score is None:
            return adj.num_simple - 2.0 * ops.edge_total(adj, factors) + ops.gram_norm(factors)
        return ops.factor_loss(adj, factors, score)


class SelfExpression(LowRank):
    """Eq. 3 (SC): each row of A is expressed by other rows. C_ij is high where j's links express i's.

    `L = ‖A − VVᵀA‖² = ‖A‖² − 2 ‖AᵀV‖² + tr(VᵀAAᵀV · VᵀV)`
    """

    expresses = True

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        return ops.expression_loss(adj, self.rows(adj, n_id))


class NormalisedFactors(LowRank):
    """MF or SC of S = D^-1/2 (A + I) D^-1/2: C_ij = temperature * cosine(V_i, V_j).

    On the plain adjacency the rows of V grow with the degree, and <V_i, V_j> follows hubs more than
    communities. Here degrees are divided out twice: of the matrix that V explains, and of the score. The
    temperature is learnt too by default.
    """

    normalised = True

    def __init__(
        self, num_nodes: int, rank: int, temperature: float = 8.0, learn_temperature: bool = True
    ) -> None:
        super().__init__(num_nodes, rank)
        self.temperature = Temperature(temperature, learn_temperature)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        unit = F.normalize(self.rows(adj, n_id), dim=1)
        return self.temperature(ops.edge_dot(adj, ops.targets(adj, unit), unit))

    def propagated(self, adj: Adjacency, factors: Tensor) -> tuple[Tensor, float]:
        """P = S^T V, [num_src, rank], and ||S||^2."""
        key = (NormalisedFactors, factors.dtype)
        target, source, norm = adj.once(key, lambda: _scales(adj, factors.dtype))
        scaled = target * factors[: adj.num_dst]
        own = F.pad(scaled, (0, 0, 0, adj.num_src - adj.num_dst))
        return source * (ops.spread(adj, scaled) + own), norm


def _scales(adj: Adjacency, dtype: torch.dtype) -> tuple[Tensor, Tensor, float]:
    """1 / sqrt(degree) of targets and sources, the node itself counted, [nodes, 1] both; and ||S||^2."""
    row, col = adj.row[adj.simple], adj.col[adj.simple]
    target = 1.0 / (1.0 + torch.bincount(row, minlength=adj.num_dst)).double()
    source = 1.0 / (1.0 + torch.bincount(col, minlength=adj.num_src)).double()
    norm = (target[row] * source[col]).sum() + (target * source[: adj.num_dst]).sum()
    target, source = (part.sqrt().to(dtype).unsqueeze(1) for part in (target, source))
    return target, source, float(norm)


class NormalisedFactorization(NormalisedFactors):
    """MF of S. At its optimum V holds the leading eigenvectors, which `SpectralSimilarity` computes.

    `L = ‖S − VVᵀ‖² = ‖S‖² − 2 ⟨P, V⟩ + ‖VᵀV‖²`
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        propagated, norm = self.propagated(adj, factors)
        along_edges = (propagated * factors).sum()
        return norm - 2.0 * along_edges + (factors.t() @ factors).square().sum()


class NormalisedExpression(NormalisedFactors):
    """SC of S: each row of S is expressed by other rows.

    `L = ‖S − VVᵀS‖² = ‖S‖² − 2 ‖P‖² + tr(PᵀP · VᵀV)`
    """

    expresses = True

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        propagated, norm = self.propagated(adj, factors)
        gram = propagated.t() @ propagated
        expressed = (gram * (factors.t() @ factors)).sum()
        return norm - 2.0 * torch.trace(gram) + expressed
