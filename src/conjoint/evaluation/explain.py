"""Why a node is predicted as it is: what removing an edge, a path or a feature changes, and the attention.

The change is measured on the whole model, whatever its members are: the part of the graph around the node is
asked again without the thing in question (`occlusion.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import is_sparse
from ..nn.attention import ConjointAttention
from ..nn.cat import CAT
from ..nn.ensemble import Ensemble, MemberInfo
from ..nn.model import NodeModel
from ..nn.random_propagation import RandomPropagation
from ..nn.residual import ResidualCAT
from ..training.config import TrainConfig
from ..training.steps import whole_graph
from .occlusion import Occlusion, Removal

Path = tuple[int, ...]  # places in a part, from a neighbour outwards
Attentive = CAT | RandomPropagation | ResidualCAT
ATTENTION = ("feature", "structural", "conjoint")
# Rows of all forward passes of one explanation: nodes of the part x trainings x removals. Some seconds.
WORK = 1_000_000
LEAST, MOST = 24, 120  # removals
DEEPEST = 3  # hops of a path
FORKS = 6  # the strongest ends of paths are gone on from


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


@dataclass(frozen=True)
class MemberView:
    """What one member says of the node. `change`: of the whole model's probability, if it is left out."""

    name: str
    weight: float
    predicted: int
    probability: float  # of its own prediction
    for_class: float  # of the class that is explained
    change: float | None  # None: there is no other


@dataclass(frozen=True)
class Effect:
    """What is removed, and by how much that changes the probability of the explained class.

    `nodes` is a path that leads away from the node, itself left out: its last edge is removed. `feature` is a
    name, with the node's value.
    """

    change: float
    nodes: tuple[int, ...] = ()
    feature: str = ""
    value: float = 0.0


@dataclass(frozen=True, eq=False)
class Why:
    """Why one node is predicted as it is. Nodes are rows of the graph, classes are numbers.

    `attention` has a number for each of `listens_to`, the node itself among them: the mean over heads and
    layers and, by weight, over the members with conjoint attention (with any, if none has). A part is absent
    where no member has it: GAT has no structural attention. `by_member` has every layer of every member.
    """

    node: int
    predicted: int
    probability: float  # on the whole graph
    on_part: float  # the same on the part that is asked again and again; changes are relative to it
    alone: float  # without any edge
    featureless: float | None  # without its own features; None: it has none
    neighbours: tuple[Effect, ...]
    paths: tuple[Effect, ...]
    features: tuple[Effect, ...]
    members: tuple[MemberView, ...]
    listens_to: tuple[int, ...]
    attention: Mapping[str, tuple[float, ...]]
    by_member: tuple[Mapping[str, Any], ...]
    bounds: Mapping[str, Any]  # what was looked at, of how much


def explain(
    model: NodeModel,
    graph: Graph,
    config: TrainConfig,
    node: int,
    probabilities: npt.NDArray[Any],
    *,
    layer: int | None = None,
    most: int | None = None,
    around: int | None = None,
) -> Why:
    """Why the model predicts what it predicts for one node.

    Args:
        probabilities: of every node, as the model gives them on the whole graph. [nodes, classes]
        layer: of the attention, counted from 1; None: the mean of all.
        most: removals to try; by default as many as take some seconds.
        around: nodes of the part that is asked, by default 3000; of more, some stand for the rest.
    """
    if not 0 <= node < graph.num_nodes:
        raise InputError(f"node {node}: the graph has nodes 0 to {graph.num_nodes - 1}")
    asked = Occlusion(model, graph, config, node, around)
    part, chosen = asked.part, int(probabilities[node].argmax())
    most = most or min(MOST, max(LEAST, WORK // (part.size * len(asked.members))))
    listens_to, attention, by_member, weight = _attention(asked, layer)
    sources = _sources(asked, weight, 0)
    groups = _feature_groups(asked)
    columns = tuple(column for group in groups for column in group.columns)
    own = asked.ask([Removal(), Removal(edges=tuple((0, k) for k in sources)), Removal(columns=columns)])
    base, alone, featureless = asked.joined(own)[:, chosen].tolist()

    def changes(removals: Sequence[Removal]) -> list[float]:
        return (asked.joined(asked.ask(removals))[:, chosen] - base).tolist() if removals else []

    near, share = sources[: max(1, most // 2)], max(4, most // 4)
    moved = changes([Removal(edges=((0, k),)) for k in near])
    steps: dict[Path, float] = {(k,): change for k, change in zip(near, moved, strict=True)}
    features, asks = _features(groups, share, changes)
    left, paths, ends = most - len(near) - asks, dict[Path, float](), steps
    done = {frozenset((0, k)) for k in near}  # edges
    for _ in range(1, min(DEEPEST, part.hops)):
        longer = _longer(asked, weight, ends, done, min(left, share))
        moved = changes([Removal(edges=((path[-2], path[-1]),)) for path in longer])
        ends = dict(zip(longer, moved, strict=True))
        paths, left = paths | ends, left - len(longer)
    ids = part.n_id.tolist()

    def effects(found: Mapping[Path, float]) -> tuple[Effect, ...]:
        return _strongest(Effect(change, tuple(ids[k] for k in path)) for path, change in found.items())

    looked = {
        "hops": part.hops,
        "nodes": part.size,
        "whole_component": part.reaches_all,
        "sampled": part.sampled,
        "neighbours": [len(near), len(sources)],
        "features": [len(features), len(groups)],
        "paths": len(paths),
    }
    return Why(
        node=node,
        predicted=chosen,
        probability=float(probabilities[node, chosen]),
        on_part=base,
        alone=alone,
        featureless=featureless if groups else None,
        neighbours=effects(steps),
        paths=effects(paths),
        features=features,
        members=_members(asked, own[0], chosen, base),
        listens_to=listens_to,
        attention=attention,
        by_member=by_member,
        bounds=looked,
    )


def _strongest(found: Iterable[Effect]) -> tuple[Effect, ...]:
    return tuple(sorted(found, key=lambda one: -abs(one.change)))


def _features(
    groups: Sequence["_Group"], most: int, changes: Callable[[Sequence[Removal]], list[float]]
) -> tuple[tuple[Effect, ...], int]:
    """One by one; where there are many, those that move it most together. The number of questions too."""
    asks = 0
    if len(groups) > most:
        bins = [groups[k::most] for k in range(most)]
        moved = changes([Removal(columns=tuple(c for one in bin for c in one.columns)) for bin in bins])
        order = sorted(range(most), key=lambda k: -abs(moved[k]))
        groups, asks = [one for k in order for one in bins[k]][:most], most
    moved = changes([Removal(columns=one.columns) for one in groups])
    told = (Effect(change, (), one.name, one.value) for one, change in zip(groups, moved, strict=True))
    return _strongest(told), asks + len(groups)


def _sources(asked: Occlusion, weight: Tensor, target: int) -> list[int]:
    """Whom a node of the part receives from, itself left out, by attention."""
    mine = ((asked.part.row == target) & (asked.part.col != target)).nonzero().squeeze(1)
    order = mine[weight[mine].argsort(descending=True, stable=True)]
    return list(dict.fromkeys(asked.part.col[order].tolist()))


def _longer(
    asked: Occlusion, weight: Tensor, ends: Mapping[Path, float], done: set[frozenset[int]], most: int
) -> list[Path]:
    """Paths that are one edge longer, from those whose last edge matters most. An edge comes once."""
    strongest = sorted(ends, key=lambda path: -abs(ends[path]))[:FORKS]
    made: list[Path] = []
    for path in strongest:
        some = [k for k in _sources(asked, weight, path[-1]) if k not in (0, *path)]
        new = [(*path, k) for k in some if frozenset((path[-1], k)) not in done]
        new = new[: max(1, most // max(1, len(strongest)))]
        done |= {frozenset(one[-2:]) for one in new}
        made += new
    return made[: max(0, most)]


@dataclass(frozen=True)
class _Group:
    """Columns that are one thing to the user: a number, a word, the categories of a column."""

    name: str
    columns: tuple[int, ...]
    value: float


def _feature_groups(asked: Occlusion) -> list[_Group]:
    """What the node itself has: of sparse features those that are stored, of dense ones what is not usual."""
    x, names = asked.x, asked.graph.feature_names
    if is_sparse(x):
        end = int(x.crow_indices()[1])
        found = dict(zip(x.col_indices()[:end].tolist(), x.values()[:end].tolist(), strict=True))
    else:
        unusual = ((x[0] - asked.blank).abs() > 1e-9).nonzero().squeeze(1).tolist()
        found = {column: float(x[0, column]) for column in unusual}
    names = names if names is not None and len(names) == x.size(1) else None
    joined: dict[str, list[int]] = {}
    for column in found:
        name = f"feature {column}" if names is None else names[column]
        joined.setdefault(name.partition("=")[0] or name, []).append(column)
    groups = []
    for name, columns in joined.items():
        # Of the categories of a column, the node has the one with the largest value.
        largest = max(columns, key=lambda column: found[column])
        shown = name if names is None else names[largest]
        groups.append(_Group(shown, tuple(columns), found[largest]))
    return sorted(groups, key=lambda one: -abs(one.value))


def _members(asked: Occlusion, own: Tensor, chosen: int, base: float) -> tuple[MemberView, ...]:
    views = []
    for k, name in enumerate(asked.names if isinstance(asked.model, Ensemble) else []):
        others = asked.weights.clone()
        others[k] = 0.0
        change = float(asked.joined(own[None], others)[0, chosen]) - base if len(own) > 1 else None
        best = int(own[k].argmax())
        row = (float(asked.weights[k]), best, float(own[k, best]), float(own[k, chosen]))
        views.append(MemberView(name, *row, change))
    return tuple(sorted(views, key=lambda one: -one.weight))


@torch.no_grad()
def _attention(asked: Occlusion, layer: int | None) -> tuple[tuple[int, ...], dict[str, Any], Any, Tensor]:
    """Whom the node attends to, how much by each part, the same by member; and a weight of every entry."""
    part, (adj, entry) = asked.part, asked.adjacency([Removal()])
    mine = (part.row == 0).nonzero().squeeze(1)
    sources, place = part.col[mine].unique(return_inverse=True)
    total, by_name = torch.zeros(part.row.numel(), dtype=torch.float64), dict[str, Any]()
    with asked.on_copies(entry, 1):
        for k, (name, weight, member) in enumerate(asked.members):
            if not isinstance(member, Attentive) or not attends(member):
                continue
            found = member.attention(asked.reads(k, asked.x), asked.form(member, adj))
            views = [_over_heads(one) for one in found]
            total += weight * sum(view["conjoint"] for view in views) / len(views)
            told = by_name.setdefault(name, {"weight": 0.0, "layers": [{} for _ in views]})
            told["conjoint"] = member.intervention is not None
            told["weight"] += weight
            for kept, view in zip(told["layers"], views, strict=True):
                for name_of_part, values in view.items():
                    here = torch.zeros(len(sources), dtype=torch.float64)
                    here = here.index_add(0, place, values[mine])  # parallel edges count as one
                    kept[name_of_part] = kept.get(name_of_part, 0.0) + weight * here
    if not by_name:
        total = 1.0 / asked.whole.degree[part.n_id[part.col]].double()
    for told in by_name.values():
        for one in told["layers"]:
            one.update({key: value / told["weight"] for key, value in one.items()})
    deepest = max((len(told["layers"]) for told in by_name.values()), default=0)
    if layer is not None and not 1 <= layer <= deepest:
        raise InputError(f"--layer {layer}: the attention has layers 1 to {deepest}; choose one of them")
    means = _joint([told for told in by_name.values() if told["conjoint"]] or list(by_name.values()), layer)
    strength = means.get("conjoint", torch.zeros(len(sources)))
    order = strength.argsort(descending=True, stable=True)
    by_member = []
    for name, told in by_name.items():
        layers = [{key: value[order].tolist() for key, value in one.items()} for one in told["layers"]]
        by_member.append({"member": name, "weight": told["weight"], "layers": layers})
    listens_to = tuple(part.n_id[sources[order]].tolist())
    return listens_to, {key: tuple(v[order].tolist()) for key, v in means.items()}, tuple(by_member), total


def _over_heads(one: ConjointAttention) -> dict[str, Tensor]:
    """Means over heads. Where features take no part, structure is all: that is said once."""
    structural = None if one.feature is None else one.structural
    parts = {"feature": one.feature, "structural": structural, "conjoint": one.conjoint}
    if one.structural is None:  # attention to features alone
        parts["feature"] = None
    return {
        name: (weights.mean(dim=1) if weights.dim() == 2 else weights).double().cpu()
        for name, weights in parts.items()
        if weights is not None
    }


def _joint(members: Sequence[Mapping[str, Any]], layer: int | None) -> dict[str, Tensor]:
    """The mean over layers, or one of them, and over members by their weight."""
    out: dict[str, Tensor] = {}
    for name in ATTENTION:
        found = []
        for told in members:
            layers = told["layers"] if layer is None else told["layers"][layer - 1 : layer]
            views = [view[name] for view in layers if name in view]
            found += [(told["weight"], torch.stack(views).mean(dim=0))] if views else []
        if found:
            out[name] = sum(weight * view for weight, view in found) / sum(weight for weight, _ in found)
    return out


def as_document(
    found: Why,
    graph: Graph,
    class_names: Sequence[str],
    probabilities: npt.NDArray[Any],
    names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The explanation in the user's own words: ids, names where there are any, classes."""
    classes = [*class_names, None]  # class -1 takes the last: not known

    def about(node: int) -> dict[str, Any]:
        shares = probabilities[node]
        return {
            "id": _plain(graph.node_ids[node]),
            **({} if names is None else {"name": names[node]}),
            "class": classes[int(graph.y[node])],
            "predicted": class_names[int(shares.argmax())],
            "confidence": round(float(shares.max()), 6),
        }

    change = {one.nodes[0]: one.change for one in found.neighbours}
    shown = [node for node in found.listens_to if node in change or node == found.node]
    shown.sort(key=lambda node: -abs(change.get(node, 0.0)))
    at = {node: k for k, node in enumerate(found.listens_to)}

    def of_shown(layer: Mapping[str, Any]) -> dict[str, Any]:
        return {part: [weights[at[node]] for node in shown] for part, weights in layer.items()}

    return {
        "node": _plain(graph.node_ids[found.node]),
        **({} if names is None else {"name": names[found.node]}),
        "label": classes[int(graph.y[found.node])],
        "predicted": class_names[found.predicted],
        "probability": found.probability,
        "on_part": found.on_part,
        "without_edges": found.alone,
        "without_own_features": found.featureless,
        "members": [
            {**vars(one), "predicted": class_names[one.predicted]}  # vars: a flat dataclass
            for one in found.members
        ],
        "neighbours": [
            {
                **about(node),
                "change": change.get(node),
                **{part: weights[at[node]] for part, weights in found.attention.items()},
            }
            for node in shown
        ],
        "paths": [{"path": [about(node) for node in one.nodes], "change": one.change} for one in found.paths],
        "features": [
            {"feature": one.feature, "value": one.value, "change": one.change} for one in found.features
        ],
        "attention": [{**one, "layers": list(map(of_shown, one["layers"]))} for one in found.by_member],
        "looked_at": dict(found.bounds),
    }


def row_of(name: str, graph: Graph, names: Sequence[str] | None = None) -> int:
    """The node with this id; or with this name, if only one has it."""
    ids = graph.node_ids
    found = np.flatnonzero(ids.astype(str) == name)
    if len(found) == 0 and names is not None:
        found = np.flatnonzero(np.asarray(names) == name)
        if len(found) > 1:
            raise InputError(f"node {name!r}: {len(found)} nodes have this name; give the id of one")
    if len(found) == 0:
        some = ", ".join(map(str, ids[:3]))
        raise InputError(f"node {name!r} is not in {graph.name}; its ids look like {some}")
    return int(found[0])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
