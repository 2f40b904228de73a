"""ARMA filters: parallel stacks of a recursion that keeps seeing the input."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import ARMAConv

from ..model import NodeModel
from .graph import WeightedGraph, symmetric
from .layers import Rows, dropped, project, weighted_sum
from .settings import Settings


class ARMAConvolution(ARMAConv):
    """X_{t+1} = act(S X_t W + dropout(X_0) V + b), stacks averaged; parameters and their names are PyG's.

    The stacks lie side by side as columns, so that one pass over the graph serves all, and X_0 may be sparse.
    """

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(in_channels, out_channels, **options)
        if self.num_layers == 1:
            self.register_parameter("weight", None)  # PyG keeps one that a single step never reads

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        stacks, width = self.num_stacks, self.out_channels
        out = project(x, _side_by_side(self.init_weight))
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


@dataclass(frozen=True)
class ARMASettings(Settings):
    hidden: int = 16
    num_stacks: int = 2
    num_layers: int = 1  # T, the steps of the recursion inside each of the two layers
    shared_weights: bool = True
    dropout: float = 0.5
    skip_dropout: float = 0.75


class ARMA(NodeModel):
    """Bianchi et al., TPAMI 2021: two ARMA layers."""

    def __init__(self, features: int, classes: int, settings: ARMASettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or ARMASettings()
        options: dict[str, Any] = {
            "num_stacks": s.num_stacks,
            "num_layers": s.num_layers,
            "shared_weights": s.shared_weights,
            "dropout": s.skip_dropout,
        }
        self.first = ARMAConvolution(features, s.hidden, **options)
        self.second = ARMAConvolution(s.hidden, classes, act=None, **options)

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return symmetric(edge_index, num_nodes, edge_weight, self_loops=False)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.first(dropped(self, x, self.settings.dropout), graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.second(dropped(self, self.embed(x, graph), self.settings.dropout), graph)
