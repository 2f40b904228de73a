"""GraphSAGE with the mean of the neighbours."""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from ..model import NodeModel
from .graph import WeightedGraph, mean
from .layers import FeatureLinear, Rows, dropped, weighted_sum
from .settings import Settings


class MeanConvolution(SAGEConv):
    """W_l mean_j(x_j) + W_r x_i + b. W_l comes before the mean: the same product on fewer, dense columns."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = FeatureLinear(in_channels, out_channels, bias=False)
        self.lin_r = FeatureLinear(in_channels, out_channels, bias=True)

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        return self.propagate(graph, x=self.lin_l(x)) + self.lin_r(x)


@dataclass(frozen=True)
class SAGESettings(Settings):
    hidden: int = 16
    num_layers: int = 2
    dropout: float = 0.5


class SAGE(NodeModel):
    """Hamilton et al., NeurIPS 2017, whole neighbourhoods instead of samples."""

    def __init__(self, features: int, classes: int, settings: SAGESettings | None = None) -> None:
        super().__init__()
        self.settings = settings or SAGESettings()
        widths = [features, *[self.settings.hidden] * (self.settings.num_layers - 1), classes]
        self.convs = nn.ModuleList(MeanConvolution(wide, narrow) for wide, narrow in pairwise(widths))

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return mean(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        for conv in self.convs[:-1]:
            x = conv(dropped(self, x, self.settings.dropout), graph).relu()
        return x

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.convs[-1](dropped(self, self.embed(x, graph), self.settings.dropout), graph)
