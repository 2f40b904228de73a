"""The attention of one node, neighbour by neighbour, as numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import InputError
from ..graph.graph import Graph
from ..nn.attention import ConjointAttention
from ..nn.cat import CAT
from ..nn.ensemble import Ensemble, MemberInfo
from ..nn.model import NodeModel
from ..nn.random_propagation import RandomPropagation
from ..nn.residual import ResidualCAT
from ..training.config import TrainConfig
from ..training.steps import whole_graph

Numbers = npt.NDArray[np.float64]
Attentive = CAT | RandomPropagation | ResidualCAT


@dataclass(frozen=True, eq=False)
class LayerView:
    """One layer's weights of one target, a row per neighbour; the means are over heads.

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
    """`neighbours` are rows of the graph, the largest weight first; `node` itself is among them."""

    node: int
    neighbours: npt.NDArray[np.int64]
    layers: list[LayerView]


def attention_of(model: NodeModel, data: Graph, config: TrainConfig) -> list[ConjointAttention]:
    """Every layer's attention over the whole graph, features treated as in training."""
    whole = whole_graph(model, data, config)
    if isinstance(model, Ensemble):
        info, spoken = attentive_member(model)
        return spoken.attention(model.reads(info, whole.x), whole.graph)
    if not isinstance(model, Attentive) or not attends(model):
        raise InputError(
            f"{type(model).__name__} has no attention; train cat-*, rescat-*, gat, spread-* or gated-*"
        )
    return model.attention(whole.x, whole.graph)


def has_attention(model: NodeModel) -> bool:
    members = [one for _, one in model.each()] if isinstance(model, Ensemble) else [model]
    return any(attends(one) for one in members)


def attends(model: NodeModel) -> bool:
    """Whether it is a network with attention; residual blocks may have none."""
    return isinstance(model, Attentive) and not (isinstance(model, ResidualCAT) and not model.edges)


def attentive_member(model: Ensemble) -> tuple[MemberInfo, Any]:
    """The member with attention that counts most; conjoint attention goes before plain."""
    found = [(info, one) for info, one in model.each() if attends(one)]
    if not found:
        names = ", ".join(sorted({info.name for info in model.infos}))
        raise InputError(f"no member of this ensemble has attention ({names}); train one with --model")

    def rank(pair: tuple[MemberInfo, Any]) -> tuple[bool, float]:
        total = sum(info.weight for info in model.infos if info.name == pair[0].name)
        return pair[1].intervention is not None, total

    return max(found, key=rank)


def explain(attention: list[ConjointAttention], node: int, layer: int | None = None) -> Explanation:
    """The neighbours of one node, ordered by their conjoint weight in one layer, or over all of them."""
    sources, targets = attention[0].edge_index.cpu().numpy()
    mine = np.flatnonzero(targets == node)
    if mine.size == 0:
        raise InputError(f"node {node}: it listens to nobody, not even itself; is it in this graph?")
    neighbours, place = np.unique(sources[mine], return_inverse=True)

    def rows(weights: Tensor) -> Numbers:
        """Of the neighbours: parallel edges count as one, with the sum of their weights."""
        found = weights.detach().cpu().double().numpy()[mine]
        out = np.zeros((len(neighbours), *found.shape[1:]))
        np.add.at(out, place, found)
        return out

    decisive = attention if layer is None else [attention[layer]]
    order = np.argsort(-sum(rows(one.conjoint).mean(axis=1) for one in decisive), kind="stable")

    def view(one: ConjointAttention) -> LayerView:
        feature, structural = (
            None if part is None else rows(part)[order] for part in (one.feature, one.structural)
        )
        mix = None if one.mix is None else one.mix.detach().cpu().double().numpy()
        return LayerView(rows(one.conjoint)[order], feature, structural, mix)

    return Explanation(node, neighbours[order], [view(one) for one in attention])
