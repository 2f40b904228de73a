"""Interventions learnt as a low-rank factor V of the adjacency: C_ij = <V_i, V_j>.

Both losses are sums over all N x N pairs. Expanding the squares leaves one pass over the edges and one small
Gram matrix, so they cost O(|E| rank + N rank^2) and are exact.
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from ...errors import InputError
from ...graph.adjacency import Adjacency
from .. import ops
from ..attention import Structure
from .base import Intervention


class LowRank(Intervention):
    """Factors V of [num_nodes, rank], one row per node of the whole graph."""

    def __init__(self, num_nodes: int, rank: int) -> None:
        super().__init__()
        if num_nodes < 1:
            raise InputError(f"num_nodes: {num_nodes}; an intervention needs a graph with at least one node")
        if rank < 1:
            raise InputError(f"rank: {rank}; choose 1 or more (the number of classes is a good start)")
        self.factors = nn.Parameter(torch.empty(num_nodes, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.factors)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """C_ij = <V_i, V_j>. -> [entries]"""
        factors = self.rows(adj, n_id)
        return ops.edge_dot(adj, ops.targets(adj, factors), factors)

    def structure(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Structure:
        if adj.log_weight is not None or type(self).score is not LowRank.score:
            return super().structure(adj, x, n_id)
        return Structure(adj, *ops.factor_attention(adj, self.rows(adj, n_id)))

    def rows(self, adj: Adjacency, n_id: Tensor | None) -> Tensor:
        """The rows of V that belong to the sources of `adj`. [num_src, rank]"""
        name, known = type(self).__name__, self.factors.size(0)
        if n_id is None and adj.num_src != adj.num_dst:
            raise InputError(
                f"intervention: {name} scores pairs of nodes of one kind, but the graph is bipartite "
                f"({adj.num_src} sources, {adj.num_dst} targets); pass score= with one number per edge"
            )
        if n_id is None and adj.num_src != known:
            raise InputError(
                f"intervention: {name} was made for {known} nodes, but this graph has {adj.num_src}; "
                f"make it with num_nodes={adj.num_src}, or pass n_id for a part of its graph"
            )
        return self.factors if n_id is None else self.factors.index_select(0, n_id[: adj.num_src])

    def extra_repr(self) -> str:
        return f"num_nodes={self.factors.size(0)}, rank={self.factors.size(1)}"


class MatrixFactorization(LowRank):
    r"""Eq. 2 (MF): V V^T approximates the adjacency. A high C_ij says: these two share a cluster.

    .. math:: L = \|A - V V^T\|_F^2 = \|A\|^2 - 2 \sum_{ij} A_{ij} C_{ij} + \|V^T V\|_F^2

    A has no self-loops and counts parallel edges once.
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        if score is None:
            return adj.num_simple - 2.0 * ops.edge_total(adj, factors) + ops.gram_norm(factors)
        return ops.factor_loss(adj, factors, score)


class SelfExpression(LowRank):
    r"""Eq. 3 (SC): each row of A is expressed by other rows. A high C_ij says: j's links stand in for i's.

    .. math:: L = \|A - V V^T A\|_F^2 = \|A\|^2 - 2 \|A^T V\|_F^2 + \mathrm{tr}(V^T A A^T V \cdot V^T V)
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        return ops.expression_loss(adj, self.rows(adj, n_id))
