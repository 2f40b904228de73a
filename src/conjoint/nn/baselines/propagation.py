"""Models that learn a map of each node's own features and leave the graph to fixed propagation."""

from dataclasses import dataclass

from torch import Tensor

from ...errors import InputError
from ..model import NodeModel
from .graph import WeightedGraph, symmetric
from .layers import FeatureLinear, PersonalizedPropagation, dropped
from .settings import Settings


@dataclass(frozen=True)
class SGCSettings(Settings):
    steps: int = 2


class SGC(NodeModel):
    """Wu et al., ICML 2019: S^K X W. W comes first here: the same product, on as many columns as classes."""

    def __init__(self, features: int, classes: int, settings: SGCSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or SGCSettings()
        self.read = FeatureLinear(features, classes, bias=False)

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return symmetric(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        """There is no hidden layer: the class scores are all that is learnt about a node."""
        return self(x, graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        out = self.read(x)
        for _ in range(self.settings.steps):
            out = graph.gather(out)
        return out


@dataclass(frozen=True)
class APPNPSettings(Settings):
    hidden: int = 64
    dropout: float = 0.5
    edge_dropout: float = 0.5
    steps: int = 10
    alpha: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.alpha <= 1.0:
            raise InputError(f"alpha={self.alpha!r}: the chance to return home; choose 0 < alpha <= 1")


class APPNP(NodeModel):
    """Klicpera et al., ICLR 2019: a two-layer perceptron, its predictions spread by personalised PageRank."""

    def __init__(self, features: int, classes: int, settings: APPNPSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or APPNPSettings()
        self.first = FeatureLinear(features, s.hidden)
        self.second = FeatureLinear(s.hidden, classes)
        self.spread = PersonalizedPropagation(s.steps, s.alpha, s.edge_dropout)

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
        return symmetric(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        """The hidden units after propagation: without dropout the logits are a linear map of these."""
        return self.spread(self._hidden(x), graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        hidden = dropped(self, self._hidden(x), self.settings.dropout)
        return self.spread(self.second(hidden), graph)

    def _hidden(self, x: Tensor) -> Tensor:
        return self.first(dropped(self, x, self.settings.dropout)).relu()
