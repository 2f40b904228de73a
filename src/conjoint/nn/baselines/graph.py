"""The graph as the baselines read it: entries sorted by listener, one fixed weight each.

Whatever a method does to its adjacency (self-loops, normalisation) is done here once, not in every step.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ...graph.adjacency import Adjacency, adjacency
from .. import ops
from ..randomness import draw_seed


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """Node i receives the sum of weight_e * x_j over its entries e = (i, j)."""

    adj: Adjacency
    weight: Tensor  # [entries, 1]

    def gather(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """One step of message passing, without a tensor of messages. [nodes, f] -> [nodes, f]

        `dropout` drops entries and scales up the rest.
        """
        seed = draw_seed(x.device) if dropout > 0.0 else None
        return ops.aggregate(self.adj, self.weight, x.unsqueeze(1), None, dropout, seed).squeeze(1)

    def to(self, device: torch.device | str) -> "WeightedGraph":
        return WeightedGraph(self.adj.to(device), self.weight.to(device))


def symmetric(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, *, self_loops: bool = True
) -> WeightedGraph:
    """D^-1/2 A D^-1/2, A with self-loops unless told otherwise (GCN, SGC, APPNP; ARMA without)."""
    edges, weight = gcn_norm(edge_index, edge_weight, num_nodes, add_self_loops=self_loops)
    return _weighted(edges, num_nodes, weight)


def mean(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """D^-1 A: the (weighted) mean of the neighbours, 0 for a node without any (GraphSAGE)."""
    weight = _ones(edge_index) if edge_weight is None else edge_weight.view(-1)
    total = weight.new_zeros(num_nodes).index_add(0, edge_index[1], weight)
    return _weighted(edge_index, num_nodes, weight / total[edge_index[1]])


def total(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """A as it is: the sum of the neighbours (GIN)."""
    return _weighted(edge_index, num_nodes, _ones(edge_index) if edge_weight is None else edge_weight)


def _weighted(edges: Tensor, num_nodes: int, weight: Tensor) -> WeightedGraph:
    adj = adjacency(edges, num_nodes, self_loops=False)
    return WeightedGraph(adj, weight.view(-1, 1)[adj.perm])


def _ones(edge_index: Tensor) -> Tensor:
    return torch.ones(edge_index.size(1), device=edge_index.device)
