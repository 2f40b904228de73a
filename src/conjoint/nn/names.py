"""Every model by name, told without building any: what it is and which settings it has.

A name is a body, alone or before the interventions that it stands around:

gat, gcn, appnp, ...            alone
cat-i-mf, cat-e-smooth+trust    conjoint attention, implicit or explicit; cat-s-mf: structural alone
cat-release-mf, gat-s-mf        as the authors' code has it; structural alone without the self term
rescat-i-mf, resgat, resmlp     residual blocks of conjoint attention, of attention, of neither
spread-trust, gated-ppr         random propagation, plain or with a gate on its features

Nothing heavy is imported here: `zoo.MAKERS` and `catalogue.CLASSES` say how each is made.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import InputError

Strategy = Literal["implicit", "explicit", "structural"]


@dataclass(frozen=True)
class Kind:
    """An intervention."""

    about: str
    has: tuple[str, ...] = ()  # what can be chosen about it: rank, temperature, learn_temperature
    control: bool = False  # carries no information, on purpose
    learns: bool = False  # its temperature by default: its scale is not known beforehand
    per_node: bool = False  # has a row of factors per node, by default as many columns as classes


TEMPERED = ("temperature", "learn_temperature")
ALL = ("rank", *TEMPERED)
KINDS: dict[str, Kind] = {
    "mf": Kind("matrix factorisation", ("rank",), per_node=True),
    "sc": Kind("self-expression", ("rank",), per_node=True),
    "fs": Kind("feature similarity"),
    "zero": Kind("every edge scored 0", control=True),
    "random": Kind("random scores", TEMPERED, control=True),
    "spectral": Kind("similarity of leading eigenvectors", ALL),
    "smooth": Kind("similarity of smoothed features", ALL),
    "trust": Kind("edges that look unlike random pairs", ("rank",)),
    "ppr": Kind("proximity by personalised PageRank", ALL, learns=True),
    "jaccard": Kind("shared neighbours", TEMPERED, learns=True),
    "adamic": Kind("shared neighbours, rare ones first", TEMPERED, learns=True),
    "nmf": Kind("matrix factorisation, normalised", ALL, learns=True, per_node=True),
    "nsc": Kind("self-expression, normalised", ALL, learns=True, per_node=True),
}


def kinds(name: str) -> list[Kind]:
    """The entries of `KINDS` that a name like 'smooth' or 'smooth+spectral' means."""
    parts = name.split("+")
    for part in parts:
        if part not in KINDS:
            raise InputError(f"intervention {part!r} is not known; choose one of {', '.join(KINDS)}")
    if len(set(parts)) < len(parts):
        raise InputError(f"intervention {name!r} names one twice; name each once")
    return [KINDS[part] for part in parts]


@dataclass(frozen=True)
class Body:
    about: str
    settings: dict[str, Any]  # of the network, by name, with their defaults; see `checks.settings`
    reading: dict[str, Any] = field(default_factory=dict)  # of `zoo.input_features` and `zoo.input_graph`
    scored: bool = False  # stands around an intervention
    strategy: Strategy | None = None  # how conjoint attention joins it
    per_node: bool = False  # keeps something for every node of the graph


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
GCN: dict[str, Any] = {"hidden": 16, "num_layers": 2, "dropout": 0.5}
GIN = {**GCN, "hidden": 64, "mlp_layers": 2, "norm": "batch", "train_eps": False}
ARMA: dict[str, Any] = {"hidden": 16, "num_stacks": 2, "num_layers": 1, "shared_weights": True}
ARMA |= {"dropout": 0.5, "skip_dropout": 0.75}
APPNP = {"hidden": 64, "dropout": 0.5, "edge_dropout": 0.5, "steps": 10, "alpha": 0.1}


def _conjoint(strategy: Strategy, about: str) -> Body:
    return Body(about, SELF_TERM, scored=True, strategy=strategy)


def _residual(strategy: Strategy, about: str) -> Body:
    return Body(about, SCORED_RESIDUAL, scored=True, strategy=strategy)


BODIES: dict[str, Body] = {
    "gcn": Body("graph convolutional network", GCN),
    "sage": Body("GraphSAGE, mean of the neighbours", GCN),
    "jknet": Body("jumping knowledge over GCN layers", {**GCN, "hidden": 32, "mode": "cat"}),
    "appnp": Body("perceptron, then personalised PageRank", APPNP),
    "sgc": Body("simplified graph convolution, linear", {"steps": 2}),
    "arma": Body("ARMA filters", ARMA),
    "gin": Body("graph isomorphism network", GIN),
    "monet": Body("mixture model network on node degrees", {"hidden": 16, "kernels": 3, "dropout": 0.5}),
    "gat": Body("graph attention network", GAT),
    "gat-klap": Body("GAT on features joined with eigenvectors of the Laplacian", GAT, EMBEDDING),
    "gat-netmf": Body("GAT on features joined with NetMF", GAT, EMBEDDING),
    "gat-deepwalk": Body("GAT on features joined with DeepWalk", GAT, EMBEDDING),
    "gat-self": Body("control: GAT with the self term alone", SELF_TERM),
    "gat-jaccard": Body("defence: GAT without edges between unlike nodes", GAT, PRUNING),
    "gcn-jaccard": Body("defence: GCN without edges between unlike nodes", GCN, PRUNING),
    "gcn-svd": Body("defence: GCN on a low-rank adjacency", {**GCN, "rank": 50}),
    "logistic": Body("logistic regression over hops", {"hops": "0"}),
    "boosting": Body(
        "gradient-boosted trees over hops", {"nodes": 1, "rounds": 1, "rank": 64, "labelled": 0}
    ),
    "label-propagation": Body("propagated labels", {"teleport": 0.1, "steps": 50}, per_node=True),
    "cat-i": _conjoint("implicit", "conjoint attention, implicit"),
    "cat-e": _conjoint("explicit", "conjoint attention, explicit"),
    "cat-s": _conjoint("structural", "control: structural attention alone"),
    "gat-s": Body(
        "control: structural attention alone, without the self term", GAT, scored=True, strategy="structural"
    ),
    "cat-release": Body(
        "conjoint attention as the authors' code has it",
        {**SELF_TERM, "self_dropout": 0.9},
        scored=True,
        strategy="implicit",
    ),
    "resgat": Body("residual blocks of attention", RESIDUAL),
    "resmlp": Body("residual blocks without edges", RESIDUAL),
    "rescat-i": _residual("implicit", "residual blocks of conjoint attention, implicit"),
    "rescat-e": _residual("explicit", "residual blocks of conjoint attention, explicit"),
    "spread": Body("random propagation", RANDOM_PROPAGATION, scored=True),
    "gated": Body("random propagation of gated features", RANDOM_PROPAGATION, scored=True),
}
ALIASES = {
    "mf-only": "cat-s-mf",
    "sc-only": "cat-s-sc",
    "cat": "cat-i-mf",
    "cat-i": "cat-i-mf",
    "cat-e": "cat-e-mf",
}
ENSEMBLE = "ensemble"  # several models of this file, weighed by validation nodes: what is trained by default


@dataclass(frozen=True)
class ModelName:
    """The parts of a model's name."""

    body: str  # a key of BODIES
    interventions: tuple[str, ...] = ()  # keys of KINDS

    @property
    def strategy(self) -> Strategy | None:
        """How conjoint attention joins them; None: the body is something else."""
        return BODIES[self.body].strategy

    @property
    def usual(self) -> dict[str, Any]:
        """The settings of the body, and what can be chosen about its interventions."""
        found = [KINDS[one] for one in self.interventions]
        # Several are weighed against each other anyway; propagation gives scores no gradient to learn by.
        learns = len(found) == 1 and found[0].learns and self.strategy is not None
        # Columns of V or dimensions that are compared; how sharply attention follows a similarity.
        choices = {"rank": int, "temperature": 8.0, "learn_temperature": learns}
        added = {key: value for key, value in choices.items() if any(key in kind.has for kind in found)}
        return {**BODIES[self.body].settings, **BODIES[self.body].reading, **added}

    @property
    def about(self) -> str:
        found = [KINDS[one] for one in self.interventions]
        words = [f"{kind.about} (a control)" if kind.control else kind.about for kind in found]
        return ", ".join([BODIES[self.body].about, *words])

    def __str__(self) -> str:
        return "-".join([self.body, "+".join(self.interventions)] if self.interventions else [self.body])


def parse(name: str) -> ModelName:
    """The only place that takes a model's name apart."""
    name = ALIASES.get(name, name)
    start, _, joined = name.rpartition("-")
    if start in BODIES and BODIES[start].scored:
        kinds(joined)
        return ModelName(start, tuple(joined.split("+")))
    if name not in BODIES or BODIES[name].scored:
        plain, scored = ([key for key, body in BODIES.items() if body.scored == is_] for is_ in (False, True))
        raise InputError(
            f"model {name!r} is not known; choose one of {', '.join(plain)}, or {'-, '.join(scored)}- before "
            f"an intervention: {', '.join(KINDS)}"
        )
    return ModelName(name)


_PLAIN = [name for name, body in BODIES.items() if not body.scored]
_SCORED = [f"{name}-{one}" for name, body in BODIES.items() if body.scored for one in KINDS]
MODELS: dict[str, str] = {name: parse(name).about for name in (*_PLAIN, *_SCORED, "mf-only", "sc-only")}
"""Names that `zoo.build` knows, each with one line on what it is; a plus joins more interventions."""
