"""Graph isomorphism networks."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .. import checks
from ..model import NodeModel
from ..norm import BatchNorm
from .graph import WeightedGraph, total
from .layers import FeatureLinear, Isomorphism, dropped
from .settings import Settings


@dataclass(frozen=True)
class GINSettings(Settings):
    hidden: int = 64
    num_layers: int = 2
    dropout: float = 0.5
    mlp_layers: int = 2  # linear maps in each layer's perceptron: 1 or 2
    norm: str = "batch"  # between the two; "none" without
    train_eps: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("norm", self.norm, ("batch", "none"))
        checks.one_of("mlp_layers", str(self.mlp_layers), ("1", "2"))


class GIN(NodeModel):
    """Xu et al., ICLR 2019: MLP((1 + eps) x_i + sum of x_j), the MLP two linear maps with batch norm between.

    The MLP's first map is taken before the sum, where it reads sparse rows and leaves fewer columns to add;
    its bias comes after the sum, or not at all where batch norm would cancel it.
    """

    def __init__(self, features: int, classes: int, settings: GINSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or GINSettings()
        inputs = [features, *[s.hidden] * (s.num_layers - 1)]
        outputs = [*[s.hidden] * (s.num_layers - 1), classes]
        inner = outputs if s.mlp_layers == 1 else [s.hidden] * s.num_layers
        self.firsts = nn.ModuleList(
            FeatureLinear(wide, narrow, bias=False) for wide, narrow in zip(inputs, inner, strict=True)
        )
        self.convs = nn.ModuleList(Isomorphism(_rest(width, s), train_eps=s.train_eps) for width in outputs)

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return total(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        for layer in range(self.settings.num_layers - 1):
            x = self._layer(layer, x, graph).relu()
        return x

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self._layer(self.settings.num_layers - 1, self.embed(x, graph), graph)

    def _layer(self, layer: int, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.convs[layer](self.firsts[layer](dropped(self, x, self.settings.dropout)), graph)


def _rest(width: int, settings: GINSettings) -> nn.Module:
    """What follows the first linear map and the sum."""
    if settings.mlp_layers == 1:
        return Bias(width)
    middle = BatchNorm(settings.hidden) if settings.norm == "batch" else Bias(settings.hidden)
    return nn.Sequential(middle, nn.ReLU(), nn.Linear(settings.hidden, width))


class Bias(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias
