"""PyG's layers, for sparse features and large graphs.

A graph is prepared once (self-loops, normalisation) as a `WeightedGraph`, whose `gather` stands in for a
layer's `propagate`: the project's own aggregation instead of one message per edge. `FeatureLinear` stands in
for a layer's linear map where its input may be sparse. Parameters and their names are PyG's.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, ARMAConv, GCNConv, GINConv, GMMConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.dense.linear import Linear

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


def symmetric(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, *, self_loops: bool = True
) -> WeightedGraph:
    """D^-1/2 A D^-1/2, A with self-loops unless told otherwise (GCN, SGC, APPNP; ARMA without)."""
    edges, weight = gcn_norm(edge_index, edge_weight, num_nodes, add_self_loops=self_loops)
    return total(edges, num_nodes, weight)


def mean(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """D^-1 A: the (weighted) mean of the neighbours, 0 for a node without any (GraphSAGE)."""
    weight = _ones(edge_index) if edge_weight is None else edge_weight.view(-1)
    degree = weight.new_zeros(num_nodes).index_add(0, edge_index[1], weight)
    return total(edge_index, num_nodes, weight / degree[edge_index[1]])


def total(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """A as it is: the sum of the neighbours (GIN)."""
    adj = adjacency(edge_index, num_nodes, self_loops=False)
    weight = _ones(edge_index) if edge_weight is None else edge_weight
    return WeightedGraph(adj, weight.view(-1, 1)[adj.perm])


def _ones(edge_index: Tensor) -> Tensor:
    return torch.ones(edge_index.size(1), device=edge_index.device)


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """Sparse rows with a dropout that is applied while they are read: the mask is a function of the seed."""

    x: Tensor
    dropout: float
    seed: Tensor


Rows = Tensor | DroppedRows


def dropped(module: nn.Module, x: Rows, dropout: float) -> Rows:
    """x after dropout, in training; dropout on dropout is allowed."""
    if not module.training or dropout <= 0.0:
        return x
    if isinstance(x, DroppedRows):
        x = ops.drop(x.x, x.dropout, x.seed)
    seed = draw_seed(x.device)
    return DroppedRows(x, dropout, seed) if x.layout == torch.sparse_csr else ops.drop(x, dropout, seed)


def project(x: Rows, weight: Tensor) -> Tensor:
    """x W^T for dense or sparse CSR x. [nodes, in], [out, in] -> [nodes, out]"""
    if isinstance(x, DroppedRows):
        return ops.sparse_project(x.x, weight, x.dropout, x.seed)
    return ops.sparse_project(x, weight) if x.layout == torch.sparse_csr else F.linear(x, weight)


class FeatureLinear(Linear):
    """PyG's linear map, for dense and for sparse CSR rows."""

    def forward(self, x: Rows) -> Tensor:
        out = project(x, self.weight)
        return out if self.bias is None else out + self.bias


def weighted_sum(self: Any, edge_index: WeightedGraph, size: Any = None, **tensors: Any) -> Tensor:
    """`MessagePassing.propagate` for layers whose message is weight * x_j and whose aggregation is a sum.

    It is assigned in the body of each class: PyG replaces an inherited `propagate` by a generated one.
    """
    x = tensors["x"]
    return edge_index.gather(x[0] if isinstance(x, tuple) else x)


class GraphConvolution(GCNConv):
    """GCNConv on a graph that is normalised already; its input may be sparse."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, normalize=False)
        self.lin = FeatureLinear(in_channels, out_channels, bias=False, weight_initializer="glorot")

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        narrow = isinstance(x, Tensor) and x.layout == torch.strided and self.in_channels < self.out_channels
        if narrow:  # fewer columns to gather before the product than after it
            return self.lin(self.propagate(graph, x=x)) + self.bias
        return super().forward(x, graph)


class MeanConvolution(SAGEConv):
    """W_l mean_j(x_j) + W_r x_i + b. W_l comes before the mean: the same product on fewer, dense columns."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = FeatureLinear(in_channels, out_channels, bias=False)
        self.lin_r = FeatureLinear(in_channels, out_channels, bias=True)

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        return self.propagate(graph, x=self.lin_l(x)) + self.lin_r(x)


class Isomorphism(GINConv):
    """GINConv: (1 + eps) x_i + the sum of the neighbours, then the given network."""

    propagate = weighted_sum


class PersonalizedPropagation(APPNP):
    """APPNP's power iteration on a graph that is normalised already; drops entries anew in every step."""

    def __init__(self, steps: int, alpha: float, edge_dropout: float = 0.0) -> None:
        super().__init__(K=steps, alpha=alpha, normalize=False)
        self.edge_dropout = edge_dropout

    def propagate(self, edge_index: WeightedGraph, size: Any = None, **tensors: Any) -> Tensor:
        return edge_index.gather(tensors["x"], self.edge_dropout if self.training else 0.0)


class ARMAConvolution(ARMAConv):
    """X_{t+1} = act(S X_t W + dropout(X_0) V + b), stacks averaged.

    The stacks lie side by side as columns, so that one pass over the graph serves all, and X_0 may be sparse.
    """

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(in_channels, out_channels, **options)
        if self.num_layers == 1:
            self.register_parameter("weight", None)  # PyG keeps one that a single step never reads

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        stacks, width = self.num_stacks, self.out_channels
        out = project(x, _side_by_side(self.init_weight))  # [nodes, stacks * out]
        for t in range(self.num_layers):
            if t > 0:
                weight = self.weight[0 if self.shared_weights else t - 1]
                out = torch.einsum("nki,kij->nkj", out.view(-1, stacks, width), weight).flatten(1)
            shared = 0 if self.shared_weights else t
            skip = project(dropped(self, x, self.dropout), _side_by_side(self.root_weight[shared]))
            out = self.propagate(graph, x=out) + skip
            if self.bias is not None:
                out = out + self.bias[shared].reshape(-1)
            if self.act is not None:
                out = self.act(out)
        return out.view(-1, stacks, width).mean(dim=1)


def _side_by_side(weight: Tensor) -> Tensor:
    """[stacks, in, out] -> [stacks * out, in]"""
    return weight.transpose(1, 2).flatten(0, 1)


class GaussianConvolution(GMMConv):
    """sum_k sum_j w_k(u_ij) x_j W_k + b, w_k a Gaussian that is scaled to sum to 1 over each neighbourhood.

    The scaling is not in the paper but in its authors' code; without it hubs drown their neighbours. It makes
    w_k a softmax of the Gaussian's exponent. The kernels are the heads of one aggregation, so that no tensor
    of entries x kernels x channels is made.
    """

    def __init__(self, in_channels: int, out_channels: int, kernels: int) -> None:
        super().__init__(in_channels, out_channels, dim=2, kernel_size=kernels, aggr="add", root_weight=False)
        # Coordinates lie in (-1, 1): spread the kernels over it, each wide enough to see all neighbours.
        centres = (torch.arange(kernels, device=self.mu.device) + 0.5) * 2.0 / kernels - 1.0
        self.mu.data.copy_(centres.unsqueeze(1).expand_as(self.mu))
        nn.init.ones_(self.sigma)

    def forward(self, x: Rows, adj: Adjacency, coordinates: Tensor) -> Tensor:
        offset = (coordinates.unsqueeze(1) - self.mu).square() / (self.sigma.square() + 1e-14)
        weight = ops.edge_softmax(adj, -0.5 * offset.sum(dim=-1))  # [entries, kernels]
        projected = project(x, self.g.t()).view(-1, self.kernel_size, self.out_channels)
        return ops.aggregate(adj, weight, projected).sum(dim=1) + self.bias
