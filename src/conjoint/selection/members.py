"""What may take part in an ensemble: conjoint attention in residual blocks, and the simple models around it.

Settings follow the number of labels: few per class ask for much dropout, weight decay and consistency on
unlabelled nodes; with many, these only hold a network back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..defaults import TRAIN
from ..errors import InputError, check_whole
from ..graph.graph import Graph
from ..graph.sparse import stored
from ..nn import zoo

FEW = 0.2  # share of the nodes that have a label: below, consistency on the others may help


@dataclass(frozen=True)
class Budget:
    """How much may be spent. The same `trials` and seed give the same bits, whatever the machine's speed."""

    minutes: float | None = None  # None: as the size of the graph asks for
    trials: int | None = None  # trainings; the time then plays no part

    def __post_init__(self) -> None:
        if self.minutes is not None and not (0.0 < self.minutes < 1e6):
            raise InputError(f"minutes={self.minutes}: give a number above 0, for example 2.5")
        if self.trials is not None:
            check_whole("trials", self.trials, 1)


@dataclass(frozen=True)
class Facts:
    """What decides which members make sense on a graph."""

    nodes: int
    entries: int
    features: int
    feature_entries: int
    classes: int
    labels: int  # that train
    has_features: bool = True

    @property
    def few_labels(self) -> bool:
        return self.labels < FEW * self.nodes


@dataclass(frozen=True)
class Member:
    """A model with its settings and those of training."""

    name: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    suits: Callable[[Facts], bool] = lambda facts: True
    first: bool = False  # worth its time before cheaper ones, on the graphs that it suits
    blind: bool = False  # sound enough to be used where labels are too few to judge anything

    @property
    def residual(self) -> bool:
        return self.model.startswith("res")

    @property
    def family(self) -> str | None:
        """Members of one body and depth: where the plainest is far behind, the others are not tried."""
        return "residual" if self.residual and "num_layers" not in self.settings else None

    @property
    def conjoint(self) -> bool:
        """Whether an intervention takes part in its attention."""
        return zoo.parse(self.model).strategy is not None

    @property
    def kind(self) -> str:
        """Members of one kind take the same time for the same work."""
        return self.model if self.model in PACE else "network"

    def seconds(self, facts: Facts) -> float:
        """What a training would take on a core of today, roughly; measured times correct it."""
        hidden, epochs = int(self.settings.get("hidden", 32)), int(self.train.get("epochs", 1))
        if self.kind == "boosting":
            columns = 3 * min(64, facts.features) + 2 * facts.classes + 7
            trees = 200 * (1 if facts.classes == 2 else facts.classes)
            work = 4.0 * trees * columns * (facts.labels + 2000)
        elif self.kind == "logistic":
            work = (
                600.0
                * len(self.settings["hops"])
                * facts.classes
                * (facts.feature_entries + 2 * facts.entries)
            )
        elif self.kind == "label-propagation":
            work = 600.0 * facts.classes * facts.entries
        else:
            usual = zoo.settings_of(self.model)
            layers = int(self.settings.get("num_layers", usual.get("steps", usual.get("num_layers", 2))))
            passes = int(self.train.get("consistency", {}).get("passes", 1))
            if not self.residual:  # its heads do not share the width
                hidden *= int(usual.get("heads", 1))
            layer = hidden * (2.0 * facts.entries + 3.0 * hidden * facts.nodes + 20.0 * facts.nodes)
            work = 3.0 * epochs * passes * (layers * layer + hidden * facts.feature_entries)
            return epochs * EPOCH_SECONDS * layers + work / PACE[self.kind]
        return work / PACE[self.kind]


# Multiplications a second of one core, and what an epoch takes per layer however small the graph is.
PACE = {"network": 1.5e10, "boosting": 5e8, "logistic": 5e9, "label-propagation": 5e9}
EPOCH_SECONDS = 0.001


def _few(facts: Facts) -> bool:
    return facts.few_labels


def _many(facts: Facts) -> bool:
    return not facts.few_labels


def _has_features(facts: Facts) -> bool:
    return facts.has_features


RESIDUAL: dict[str, Any] = {
    "epochs": 300,
    "lr": 0.005,
    "weight_decay": 0.0,
    "rule": "val-accuracy",
    "patience": 60,
    "row_normalise": "never",
    "evaluate_every": 4,
    "field": "whole",
}
# Of two members of a kind one is held back a little: which of them suits a graph is not known beforehand.
HELD_BACK = {**RESIDUAL, "weight_decay": 5e-4}
DEEP = {"num_layers": 10, "norm": "batch", "dropout": 0.2, "hidden": 64}
PROPAGATION = {**TRAIN, "patience": 100}
ATTENTION = {**TRAIN, "lr": 0.01, "patience": 100}
# Cheap ones first.
MEMBERS: tuple[Member, ...] = (
    Member("logistic", "logistic", {"hops": "0"}, suits=_has_features),
    Member("smoothed logistic", "logistic", {"hops": "2"}, suits=_has_features, blind=True),
    Member("logistic over hops", "logistic", {"hops": "012"}),
    Member("label propagation", "label-propagation"),
    Member("perceptron", "resmlp", {"hidden": 64}, RESIDUAL),
    Member("residual attention", "resgat", {"hidden": 64}, RESIDUAL),
    Member("residual CAT, mf", "rescat-i-mf", {"hidden": 64}, RESIDUAL, blind=True),
    Member("residual CAT, spectral", "rescat-e-spectral", {"hidden": 64}, HELD_BACK),
    Member("residual CAT, smooth", "rescat-i-smooth", {"hidden": 64}, HELD_BACK),
    Member("random propagation, trust", "spread-trust", {"hidden": 32}, PROPAGATION, _few, first=True),
    Member("random propagation, gate", "gated-trust", {"hidden": 32}, PROPAGATION, _few, first=True),
    Member("CAT, mf", "cat-i-mf", {"hidden": 8}, ATTENTION, _few),
    Member("CAT, trust", "cat-e-trust", {"hidden": 8}, ATTENTION, _few),
    Member("plain CAT, mf", "cat-i-mf", {"hidden": 8}, {**HELD_BACK, "lr": 0.01}, _many),
    Member("boosting", "boosting"),
    Member("deep residual CAT, mf", "rescat-i-mf", DEEP, {**RESIDUAL, "epochs": 500}, _many),
)


def with_settings(
    members: Sequence[Member], settings: Mapping[str, Any], train: Mapping[str, Any]
) -> list[Member]:
    """Members that follow what was asked of all: settings that they know, and those of training."""
    made = []
    for member in members:
        known = zoo.settings_of(member.model)
        own = {name: value for name, value in settings.items() if name in known}
        if "class_weight" in train and member.model == "label-propagation":
            continue  # it knows no weights
        asked = train if member.kind == "network" else {k: v for k, v in train.items() if k == "class_weight"}
        trained = {**member.train, **asked}
        made.append(replace(member, settings={**member.settings, **own}, train=trained))
    return made


def facts_of(graph: Graph, labels: int) -> Facts:
    x = graph.x
    return Facts(
        nodes=graph.num_nodes,
        entries=graph.num_edges + graph.num_nodes,
        features=graph.num_features,
        feature_entries=stored(x).numel(),
        classes=graph.num_classes,
        labels=labels,
    )
