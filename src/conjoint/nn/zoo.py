"""Every model by name. A name is a body, alone or before the interventions that it stands around.

gat, gcn, appnp, ...            alone
cat-i-mf, cat-e-smooth+trust    conjoint attention, implicit or explicit; cat-s-mf: structural alone
rescat-i-mf, resgat, resmlp     residual blocks of conjoint attention, of attention, of neither
spread-trust, gated-ppr         random propagation, plain or with a gate on its features
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..graph import embeddings
from ..graph.graph import Graph, as_graph
from ..graph.overlap import alike
from ..graph.sparse import row_normalise
from . import baselines as base
from . import checks
from .cat import CAT
from .conv import Strategy
from .ensemble import Ensemble, MemberInfo
from .interventions import Intervention, catalogue
from .model import NodeModel
from .random_propagation import RandomPropagation
from .residual import ResidualCAT
from .simple import BoostedTrees, HopLinear, LabelPropagation


@dataclass(frozen=True)
class ModelName:
    """The parts of a model's name."""

    body: str  # a key of BODIES
    interventions: tuple[str, ...] = ()  # keys of `catalogue.KINDS`

    @property
    def strategy(self) -> Strategy | None:
        """How conjoint attention joins them; None: the body is something else."""
        return BODIES[self.body].strategy

    def __str__(self) -> str:
        return "-".join([self.body, "+".join(self.interventions)] if self.interventions else [self.body])


ALIASES = {
    "mf-only": "cat-s-mf",
    "sc-only": "cat-s-sc",
    "cat": "cat-i-mf",
    "cat-i": "cat-i-mf",
    "cat-e": "cat-e-mf",
}


ENSEMBLE = "ensemble"  # several models of this file, weighed by validation nodes: what is trained by default


def parse(name: str) -> ModelName:
    """The only place that takes a model's name apart."""
    name = ALIASES.get(name, name)
    start, _, joined = name.rpartition("-")
    if start in BODIES and BODIES[start].scored:
        catalogue.kinds(joined)
        return ModelName(start, tuple(joined.split("+")))
    if name not in BODIES or BODIES[name].scored:
        plain, scored = ([key for key, body in BODIES.items() if body.scored == is_] for is_ in (False, True))
        raise InputError(
            f"model {name!r} is not known; choose one of {', '.join(plain)}, or {'-, '.join(scored)}- before "
            f"an intervention: {', '.join(catalogue.KINDS)}"
        )
    return ModelName(name)


# Of features, classes, settings and the intervention.
Maker = Callable[[int, int, dict[str, Any], Intervention | None], NodeModel]


@dataclass(frozen=True)
class Body:
    about: str
    make: Maker
    settings: dict[str, Any]  # of the network, by name, with their defaults; see `checks.settings`
    reading: dict[str, Any] = field(default_factory=dict)  # of `input_features` and `input_graph`
    scored: bool = False  # stands around an intervention
    strategy: Strategy | None = None
    per_node: bool = False  # keeps something for every node of the graph
    embedding: Callable[..., Tensor] | None = None  # (edge_index, num_nodes, dim, seed=)


GAT: dict[str, Any] = {
    "hidden": 8,
    "heads": 8,
    "out_heads": 1,
    "num_layers": 2,
    "dropout": 0.6,
    "attention_dropout": float,
    "residual": False,
    "norm": "none",
    "bias": "none",
    "activation": "elu",
    "propagate": 0,
    "teleport": 0.1,
}
SELF_TERM = {**GAT, "self_dropout": 0.0, "per_head": True}
RESIDUAL: dict[str, Any] = {
    "hidden": 64,
    "heads": 8,
    "num_layers": 2,
    "norm": "layer",
    "dropout": 0.5,
    "attention_dropout": 0.0,
    "roles": True,
    "aggregators": False,
}
SCORED_RESIDUAL = {**RESIDUAL, "contamination": 0.0}
RANDOM_PROPAGATION = {"hidden": 32, "steps": 8, "dropout": 0.5, "drop_node": 0.5}
EMBEDDING = {"dim": 64, "scale": 0.1, "embedding_seed": 0}  # scale: of its rows against the features'
PRUNING = {"threshold": 0.01}  # Wu et al., IJCAI 2019: no edge between ends of a smaller Jaccard similarity


def _network(network: type[CAT] | type[RandomPropagation] | type[ResidualCAT], **fixed: Any) -> Maker:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        hidden = settings.pop("hidden")
        return network(features, hidden, classes, intervention=made, **fixed, **settings)

    return make


_GAT = _network(CAT, self_term=False)


def _conjoint(strategy: Strategy, about: str) -> Body:
    return Body(about, _network(CAT, strategy=strategy), SELF_TERM, scored=True, strategy=strategy)


def _residual(strategy: Strategy, about: str) -> Body:
    make = _network(ResidualCAT, strategy=strategy)
    return Body(about, make, SCORED_RESIDUAL, scored=True, strategy=strategy)


def _joined(about: str, embedding: Callable[..., Tensor]) -> Body:
    return Body(f"GAT on features joined with {about}", _GAT, GAT, EMBEDDING, embedding=embedding)


def _random_propagation(about: str, gate: bool) -> Body:
    return Body(about, _network(RandomPropagation, gate=gate), RANDOM_PROPAGATION, scored=True)


def _simple(network: type[NodeModel]) -> Maker:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        return network(settings.pop("num_nodes", features), classes, **settings)

    return make


def _baseline(about: str, network: type[base.Baseline], **more: Any) -> Body:
    def make(features: int, classes: int, settings: Any, made: Intervention | None) -> NodeModel:
        return network(features, classes, **settings)

    return Body(about, make, network.usual, **more)


BODIES: dict[str, Body] = {
    "gcn": _baseline("graph convolutional network", base.GCN),
    "sage": _baseline("GraphSAGE, mean of the neighbours", base.SAGE),
    "jknet": _baseline("jumping knowledge over GCN layers", base.JKNet),
    "appnp": _baseline("perceptron, then personalised PageRank", base.APPNP),
    "sgc": _baseline("simplified graph convolution, linear", base.SGC),
    "arma": _baseline("ARMA filters", base.ARMA),
    "gin": _baseline("graph isomorphism network", base.GIN),
    "monet": _baseline("mixture model network on node degrees", base.MoNet),
    "gat": Body("graph attention network", _GAT, GAT),
    "gat-klap": _joined("eigenvectors of the Laplacian", embeddings.laplacian_eigenvectors),
    "gat-netmf": _joined("NetMF", embeddings.netmf),
    "gat-deepwalk": _joined("DeepWalk", embeddings.deepwalk),
    "gat-self": Body("control: GAT with the self term alone", _network(CAT), SELF_TERM),
    "gat-jaccard": Body("defence: GAT without edges between unlike nodes", _GAT, GAT, PRUNING),
    "gcn-jaccard": _baseline("defence: GCN without edges between unlike nodes", base.GCN, reading=PRUNING),
    "gcn-svd": _baseline("defence: GCN on a low-rank adjacency", base.GCNSVD),
    "logistic": Body("logistic regression over hops", _simple(HopLinear), {"hops": "0"}),
    "boosting": Body(
        "gradient-boosted trees over hops",
        _simple(BoostedTrees),
        {"nodes": 1, "rounds": 1, "rank": 64},
    ),
    "label-propagation": Body(
        "propagated labels", _simple(LabelPropagation), {"teleport": 0.1, "steps": 50}, per_node=True
    ),
    "cat-i": _conjoint("implicit", "conjoint attention, implicit"),
    "cat-e": _conjoint("explicit", "conjoint attention, explicit"),
    "cat-s": _conjoint("structural", "control: structural attention alone"),
    "resgat": Body("residual blocks of attention", _network(ResidualCAT), RESIDUAL),
    "resmlp": Body("residual blocks without edges", _network(ResidualCAT, edges=False), RESIDUAL),
    "rescat-i": _residual("implicit", "residual blocks of conjoint attention, implicit"),
    "rescat-e": _residual("explicit", "residual blocks of conjoint attention, explicit"),
    "spread": _random_propagation("random propagation", gate=False),
    "gated": _random_propagation("random propagation of gated features", gate=True),
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
        return body.make(features, classes, settings, made)


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
    body, chosen, graph = BODIES[parse(name).body], _chosen(name, settings), as_graph(data)
    if body.embedding is None:
        return graph.x
    x = graph.x if graph.has_negative_features else row_normalise(graph.x)
    made = body.embedding(graph.edge_index, x.size(0), chosen["dim"], seed=chosen["embedding_seed"])
    return embeddings.join(x, made, chosen["scale"])


def input_graph(name: str, data: Graph, **settings: Any) -> Graph:
    """The graph as the model called `name` reads it: its `input_features`, without edges that it drops."""
    if name == ENSEMBLE:
        return as_graph(data)
    graph, body = as_graph(data), BODIES[parse(name).body]
    threshold = _chosen(name, settings).get("threshold")
    if body.embedding is None and threshold is None:
        return graph
    if body.embedding is not None and graph.folder is not None:
        raise InputError(f"model {name}: it joins an embedding of the whole graph; use another for a folder")
    x = input_features(name, graph, **settings)
    if threshold is None:
        return graph.changed(given_x=x)
    keep = alike(x, graph.edge_index, threshold)
    weight = None if graph.edge_weight is None else graph.edge_weight[keep]
    return graph.changed(given_x=x, edges=graph.edge_index[:, keep], edge_weight=weight)


def reads_embedding(name: str) -> bool:
    """Whether the model called `name` reads an embedding of its training graph beside the features."""
    return name != ENSEMBLE and BODIES[parse(name).body].embedding is not None


def settings_of(name: str) -> dict[str, Any]:
    """The settings that `name` knows, with their defaults; an ensemble has only those of its members."""
    return {} if name == ENSEMBLE else checks.defaults(_usual(parse(name)))


def _chosen(name: str, given: dict[str, Any]) -> dict[str, Any]:
    chosen = checks.settings(name, _usual(parse(name)), given)
    if not 0.0 <= chosen.get("threshold", 0.0) <= 1.0:
        raise InputError(f"threshold: {chosen['threshold']}; a Jaccard similarity lies between 0 and 1")
    return chosen


def _usual(name: ModelName) -> dict[str, Any]:
    """The settings of the body, and what can be chosen about its interventions."""
    kinds = [catalogue.KINDS[one] for one in name.interventions]
    # Several are weighed against each other anyway; propagation gives scores no gradient to learn by.
    learns = len(kinds) == 1 and kinds[0].learns and name.strategy is not None
    # Columns of V or dimensions that are compared; how sharply attention follows a similarity.
    choices = {"rank": int, "temperature": 8.0, "learn_temperature": learns}
    added = {key: value for key, value in choices.items() if any(key in kind.has for kind in kinds)}
    return {**BODIES[name.body].settings, **BODIES[name.body].reading, **added}


def _about(name: str) -> str:
    parts = parse(name)
    kinds = [catalogue.KINDS[one] for one in parts.interventions]
    words = [f"{kind.about} (a control)" if kind.control else kind.about for kind in kinds]
    return ", ".join([BODIES[parts.body].about, *words])


_PLAIN = [name for name, body in BODIES.items() if not body.scored]
_SCORED = [f"{name}-{one}" for name, body in BODIES.items() if body.scored for one in catalogue.KINDS]
MODELS: dict[str, str] = {name: _about(name) for name in (*_PLAIN, *_SCORED, "mf-only", "sc-only")}
"""Names that `build` knows, each with one line on what it is; a plus joins more interventions."""
