"""Whom does a node listen to, and why? The attention of one node, neighbour by neighbour, as numbers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import InputError
from ..graph.graph import Graph
from ..nn.attention import ConjointAttention
from ..nn.cat import CAT
from ..nn.model import NodeModel
from ..nn.random_propagation import RandomPropagation
from ..training.config import TrainConfig
from ..training.steps import whole_graph

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LayerView:
    """One layer's weights of one listener, a row per neighbour; the means are over heads.

    A part is None where the model has none: GAT has no structural attention.
    """

    conjoint: Numbers  # [neighbours, heads]
    feature: Numbers | None  # [neighbours, heads]
    structural: Numbers | None  # [neighbours]
    mix: Numbers | None  # [heads, 2]: r_f, r_s

    def means(self) -> dict[str, Numbers]:
        parts = {"feature": self.feature, "structural": self.structural, "conjoint": self.conjoint}
        return {
            name: part.mean(axis=1) if part.ndim == 2 else part
            for name, part in parts.items()
            if part is not None
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """`neighbours` are rows of the graph, the most listened-to first; `node` itself is among them."""

    node: int
    neighbours: npt.NDArray[np.int64]
    layers: list[LayerView]


def attention_of(model: NodeModel, data: Graph, config: TrainConfig) -> list[ConjointAttention]:
    """Every layer's attention over the whole graph, features treated as in training."""
    if not isinstance(model, CAT | RandomPropagation):
        raise InputError(
            f"{type(model).__name__} has no attention to show; train gat, cat-*, spread-* or gated-trust"
        )
    whole = whole_graph(model, data, config)
    return model.attention(whole.x, whole.graph)


def explain(attention: list[ConjointAttention], node: int, layer: int | None = None) -> Explanation:
    """The rows of one listener, ordered by their conjoint weight in one layer, or over all of them."""
    sources, targets = attention[0].edge_index.cpu().numpy()
    mine = np.flatnonzero(targets == node)
    if mine.size == 0:
        raise InputError(f"node {node}: it listens to nobody, not even itself; is it in this graph?")
    neighbours, place = np.unique(sources[mine], return_inverse=True)
    views = [_view(layer, mine, place, len(neighbours)) for layer in attention]
    decisive = views if layer is None else [views[layer]]
    order = np.argsort(-sum(view.means()["conjoint"] for view in decisive), kind="stable")
    return Explanation(node, neighbours[order], [_reorder(view, order) for view in views])


def _view(
    layer: ConjointAttention, mine: npt.NDArray[np.int64], place: npt.NDArray[np.int64], n: int
) -> LayerView:
    def part(weights: Tensor | None) -> Numbers | None:
        if weights is None:
            return None
        rows = weights.detach().cpu().double().numpy()[mine]
        out = np.zeros((n, *rows.shape[1:]))
        np.add.at(out, place, rows)  # parallel edges speak with one voice
        return out

    conjoint = part(layer.conjoint)
    assert conjoint is not None
    mix = None if layer.mix is None else layer.mix.detach().cpu().double().numpy()
    return LayerView(conjoint, part(layer.feature), part(layer.structural), mix)


def _reorder(view: LayerView, order: npt.NDArray[np.int64]) -> LayerView:
    feature = None if view.feature is None else view.feature[order]
    structural = None if view.structural is None else view.structural[order]
    return LayerView(view.conjoint[order], feature, structural, view.mix)
