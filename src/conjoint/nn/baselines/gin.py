"""Graph isomorphism networks."""

from dataclasses import dataclass

from torch import Tensor, nn

from ..model import NodeModel
from .graph import WeightedGraph, total
from .layers import FeatureLinear, Isomorphism, dropped
from .settings import Settings


@dataclass(frozen=True)
class GINSettings(Settings):
    hidden: int = 64
    num_layers: int = 2
    dropout: float = 0.5
    train_eps: bool = False


class GIN(NodeModel):
    """Xu et al., ICLR 2019: MLP((1 + eps) x_i + sum of x_j), the MLP two linear maps with batch norm between.

    The MLP's first map is taken before the sum, where it reads sparse rows and leaves fewer columns to add;
    it has no bias, because batch norm would cancel it.
    """

    def __init__(self, features: int, classes: int, settings: GINSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or GINSettings()
        inputs = [features, *[s.hidden] * (s.num_layers - 1)]
        outputs = [*[s.hidden] * (s.num_layers - 1), classes]
        self.firsts = nn.ModuleList(FeatureLinear(width, s.hidden, bias=False) for width in inputs)
        self.convs = nn.ModuleList(
            Isomorphism(
                nn.Sequential(nn.BatchNorm1d(s.hidden), nn.ReLU(), nn.Linear(s.hidden, width)),
                train_eps=s.train_eps,
            )
            for width in outputs
        )

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
