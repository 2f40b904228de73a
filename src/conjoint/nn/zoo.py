"""The models of names.py, built; and the graph as each of them reads it."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..graph import embeddings
from ..graph.graph import Graph, as_graph
from ..graph.overlap import alike
from ..graph.sparse import row_normalise
from . import checks
from .cat import CAT
from .ensemble import Ensemble, MemberInfo
from .interventions import Intervention, catalogue
from .model import NodeModel
from .names import BODIES, ENSEMBLE, parse
from .random_propagation import RandomPropagation
from .release import ReleaseCAT
from .residual import ResidualCAT
from .simple import BoostedTrees, HopLinear, LabelPropagation

# Of features, classes, settings and the intervention.
Maker = Callable[[int, int, dict[str, Any], Intervention | None], NodeModel]


def _network(network: type[CAT] | type[RandomPropagation] | type[ResidualCAT], **fixed: Any) -> Maker:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        hidden = settings.pop("hidden")
        return network(features, hidden, classes, intervention=made, **fixed, **settings)

    return make


def _simple(network: type[NodeModel]) -> Maker:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        return network(settings.pop("num_nodes", features), classes, **settings)

    return make


def _baseline(network: str) -> Maker:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        from . import baselines  # made of PyG's layers, which take longer to import than torch

        return getattr(baselines, network)(features, classes, **settings)

    return make


_GAT = _network(CAT, self_term=False)
# One for each of BODIES.
MAKERS: dict[str, Maker] = {
    "gcn": _baseline("GCN"),
    "sage": _baseline("SAGE"),
    "jknet": _baseline("JKNet"),
    "appnp": _baseline("APPNP"),
    "sgc": _baseline("SGC"),
    "arma": _baseline("ARMA"),
    "gin": _baseline("GIN"),
    "monet": _baseline("MoNet"),
    "gat": _GAT,
    "gat-klap": _GAT,
    "gat-netmf": _GAT,
    "gat-deepwalk": _GAT,
    "gat-self": _network(CAT),
    "gat-jaccard": _GAT,
    "gcn-jaccard": _baseline("GCN"),
    "gcn-svd": _baseline("GCNSVD"),
    "logistic": _simple(HopLinear),
    "boosting": _simple(BoostedTrees),
    "label-propagation": _simple(LabelPropagation),
    "cat-i": _network(CAT, strategy="implicit"),
    "cat-e": _network(CAT, strategy="explicit"),
    "cat-s": _network(CAT, strategy="structural"),
    "gat-s": _network(CAT, strategy="structural", self_term=False),
    "cat-release": _network(ReleaseCAT),
    "resgat": _network(ResidualCAT),
    "resmlp": _network(ResidualCAT, edges=False),
    "rescat-i": _network(ResidualCAT, strategy="implicit"),
    "rescat-e": _network(ResidualCAT, strategy="explicit"),
    "spread": _network(RandomPropagation, gate=False),
    "gated": _network(RandomPropagation, gate=True),
}
# Of those that read an embedding beside the features: (edge_index, num_nodes, dim, seed=)
EMBEDDINGS: dict[str, Callable[..., Tensor]] = {
    "gat-klap": embeddings.laplacian_eigenvectors,
    "gat-netmf": embeddings.netmf,
    "gat-deepwalk": embeddings.deepwalk,
}


def build(
    name: str, *, features: int, classes: int, num_nodes: int, seed: int | None = None, **settings: Any
) -> NodeModel:
    """The model called `name`, with its default settings where none is given.

    Args:
        name: one of `MODELS`; several interventions are joined by a plus: cat-e-smooth+spectral.
        features: columns of the features that it will read (those of `input_features` where that joins some).
        classes: number of classes.
        num_nodes: nodes of the whole graph; interventions with one row per node need it.
        seed: decides the initial weights and leaves torch's own generator alone; None draws from that.
        settings: see `settings_of(name)`.
    """
    if name == ENSEMBLE:
        sizes = {"features": features, "classes": classes, "num_nodes": num_nodes}
        return _ensemble(sizes, settings.get("members"), settings.get("temperature"))
    parts, chosen = parse(name), _chosen(name, settings)
    for word, count in (("features", features), ("classes", classes), ("num_nodes", num_nodes)):
        if count < 1:
            raise InputError(f"{word}: {count}; the graph has none, so there is nothing to build {name} for")
    body, joined = BODIES[parts.body], "+".join(parts.interventions)
    with nullcontext() if seed is None else torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        made = catalogue.make(joined, num_nodes, classes, **chosen) if joined else None
        settings = {key: chosen[key] for key in body.settings}
        if body.per_node:
            settings["num_nodes"] = num_nodes
        return MAKERS[parts.body](features, classes, settings, made)


def _ensemble(sizes: dict[str, int], members: Any, temperature: Any) -> Ensemble:
    """Its members with fresh weights. What names them may come from a file, so nothing is taken on trust."""
    if not isinstance(members, list) or not isinstance(temperature, float) or not 0.0 < temperature < 100.0:
        raise InputError("ensemble: members and temperature are not those of a trained one")
    made, infos = [], []
    for one in members:
        wanted = {"name": str, "model": str, "settings": dict, "weight": float, "divides_rows": bool}
        if not isinstance(one, dict) or {key: type(value) for key, value in one.items()} != wanted:
            raise InputError(f"ensemble: a member needs {', '.join(wanted)}, each of its kind")
        if one["model"] == ENSEMBLE or not 0.0 < one["weight"] <= 1.0:
            raise InputError(f"ensemble: {one['name']!r} is no sound member")
        made.append(build(one["model"], **sizes, seed=0, **one["settings"]))
        infos.append(MemberInfo(one["name"], one["weight"], one["divides_rows"]))
    return Ensemble(made, infos, temperature)


def input_features(name: str, data: Graph, **settings: Any) -> Tensor:
    """What the model called `name` reads: the graph's features, joined with an embedding where it uses one.

    Joined features have signs, so their rows must not be divided by their sum later; where the graph's own
    ones have none, that is done here, before the embedding is put beside them.
    """
    if name == ENSEMBLE:
        return as_graph(data).x
    embedding, chosen, graph = EMBEDDINGS.get(parse(name).body), _chosen(name, settings), as_graph(data)
    if embedding is None:
        return graph.x
    x = graph.x if graph.has_negative_features else row_normalise(graph.x)
    made = embedding(graph.edge_index, x.size(0), chosen["dim"], seed=chosen["embedding_seed"])
    return embeddings.join(x, made, chosen["scale"])


def input_graph(name: str, data: Graph, **settings: Any) -> Graph:
    """The graph as the model called `name` reads it: its `input_features`, without edges that it drops."""
    if name == ENSEMBLE:
        return as_graph(data)
    graph, joins = as_graph(data), reads_embedding(name)
    threshold = _chosen(name, settings).get("threshold")
    if not joins and threshold is None:
        return graph
    if joins and graph.folder is not None:
        raise InputError(f"model {name}: it joins an embedding of the whole graph; use another for a folder")
    x = input_features(name, graph, **settings)
    if threshold is None:
        return graph.changed(given_x=x)
    keep = alike(x, graph.edge_index, threshold)
    weight = None if graph.edge_weight is None else graph.edge_weight[keep]
    return graph.changed(given_x=x, edges=graph.edge_index[:, keep], edge_weight=weight)


def reads_embedding(name: str) -> bool:
    """Whether the model called `name` reads an embedding of its training graph beside the features."""
    return name != ENSEMBLE and parse(name).body in EMBEDDINGS


def settings_of(name: str) -> dict[str, Any]:
    """The settings that `name` knows, with their defaults; an ensemble has only those of its members."""
    return {} if name == ENSEMBLE else checks.defaults(parse(name).usual)


def _chosen(name: str, given: dict[str, Any]) -> dict[str, Any]:
    chosen = checks.settings(name, parse(name).usual, given)
    if not 0.0 <= chosen.get("threshold", 0.0) <= 1.0:
        raise InputError(f"threshold: {chosen['threshold']}; a Jaccard similarity lies between 0 and 1")
    return chosen
