"""What makes PyG's layers serve sparse features and large graphs: two small replacements.

`weighted_sum` stands in for a layer's `propagate`: the project's own aggregation on a `WeightedGraph` instead
of one message per edge. `FeatureLinear` stands in for a layer's linear map where its input may be sparse.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GCNConv, GINConv
from torch_geometric.nn.dense.linear import Linear

from .. import ops
from ..randomness import draw_seed
from .graph import WeightedGraph


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
