"""Graph convolutional networks, and jumping knowledge on top of them."""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from .. import checks
from ..model import NodeModel
from .graph import WeightedGraph, symmetric
from .layers import FeatureLinear, GraphConvolution, dropped
from .settings import Settings


@dataclass(frozen=True)
class GCNSettings(Settings):
    hidden: int = 16
    num_layers: int = 2
    dropout: float = 0.5


class GCN(NodeModel):
    """Kipf and Welling, ICLR 2017: H' = ReLU(D^-1/2 (A + I) D^-1/2 H W), dropout before every layer."""

    def __init__(self, features: int, classes: int, settings: GCNSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or GCNSettings()
        widths = [features, *[self.settings.hidden] * (self.settings.num_layers - 1), classes]
        self.convs = nn.ModuleList(GraphConvolution(wide, narrow) for wide, narrow in pairwise(widths))

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return symmetric(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        for conv in self.convs[:-1]:
            x = conv(dropped(self, x, self.settings.dropout), graph).relu()
        return x

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.convs[-1](dropped(self, self.embed(x, graph), self.settings.dropout), graph)


@dataclass(frozen=True)
class JKNetSettings(Settings):
    hidden: int = 32
    num_layers: int = 2
    dropout: float = 0.5
    mode: str = "cat"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("mode", self.mode, ("cat", "max"))


class JKNet(NodeModel):
    """Xu et al., ICML 2018: each GCN layer's output jumps to the end, where one linear map reads them all."""

    def __init__(self, features: int, classes: int, settings: JKNetSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or JKNetSettings()
        widths = [features, *[s.hidden] * s.num_layers]
        self.convs = nn.ModuleList(GraphConvolution(wide, narrow) for wide, narrow in pairwise(widths))
        self.jump = JumpingKnowledge(s.mode)
        self.read = FeatureLinear(s.hidden * (s.num_layers if s.mode == "cat" else 1), classes)

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return symmetric(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        layers: list[Tensor] = []
        for conv in self.convs:
            x = conv(dropped(self, x, self.settings.dropout), graph).relu()
            layers.append(x)
        jumped: Tensor = self.jump(layers)
        return jumped

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.read(dropped(self, self.embed(x, graph), self.settings.dropout))
