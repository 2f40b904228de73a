"""How to train, as frozen values: the paper's settings are the defaults, TOML is the form on disk.

Each setting is declared with what it may be, and checked when the value is made.
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

import tomli_w

from ..errors import InputError, is_number, is_whole
from .stopping import RULES

Kind = TypeVar("Kind")
# The share of the learning rate, given how far training has come (0 at the first epoch, 1 at the last).
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
}
LEAST_SHARE = 0.01  # the last epochs still learn a little, otherwise the very last would be spent on nothing
BALANCED = "balanced"  # class weights: each class counts as much as any other
BATCH_KINDS = ("clusters", "neighbours")
BATCH_SIZES = {"clusters": 32_768, "neighbours": 1024}


def _setting(default: Any, allowed: Callable[[Any], bool], remedy: str) -> Any:
    """A field that is checked by `_check`. One whose default is None may be left out."""
    return field(default=default, metadata={"allowed": allowed, "remedy": remedy})


def _whole(default: int, least: int, remedy: str = "") -> Any:
    remedy = remedy or f"give a whole number, {least} or more"
    return _setting(default, lambda value: type(value) is int and is_whole(value, least), remedy)


def _number(default: float | None, remedy: str, inside: Callable[[float], bool] = lambda v: v >= 0) -> Any:
    return _setting(default, lambda value: is_number(value) and inside(value), remedy)


def _share(default: float) -> Any:
    return _number(default, "choose from 0 to below 1", lambda v: 0 <= v < 1)


def _one_of(default: Any, *names: str) -> Any:
    return _setting(default, lambda value: value in names, f"choose one of {', '.join(names)}")


def _is_class_weight(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, str) and value == BALANCED
    named = len(value) > 0 and all(isinstance(name, str) for name in value)
    return named and all(is_number(weight) and weight > 0 for weight in value.values())


def _check(settings: Any, prefix: str = "") -> None:
    for each in fields(settings):
        value = getattr(settings, each.name)
        left_out = value is None and each.default is None
        if not left_out and not each.metadata["allowed"](value):
            raise InputError(f"{prefix}{each.name}={value!r}: {each.metadata['remedy']}")


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """Settings of the consistency term, see `loss`; `passes` = 1 with `weight` = 0 would be plain training.

    Args:
        passes: S, stochastic passes per step.
        weight: of the consistency term once the ramp is over.
        temperature: of the sharpening; 1 leaves the mean as it is, towards 0 it becomes one-hot.
        distance: "squared" (GRAND's) or "kl" (target against prediction).
        ramp: epochs over which the weight climbs linearly from 0.
        threshold: only nodes whose sharpened target is at least this sure take part; 0 = all.
        sample: nodes per step beside the labelled ones, drawn anew each epoch; 0 = all nodes.
        drop_node: share of nodes whose features are dropped in a pass (GRAND's DropNode).
        drop_edge: share of edges that are dropped in a pass; self-loops stay.
    """

    passes: int = _whole(4, 1)
    weight: float = _number(1.0, "give a number, 0 or more")
    temperature: float = _number(0.5, "choose above 0, at most 1", lambda v: 0 < v <= 1)
    distance: str = _one_of("squared", "squared", "kl")
    ramp: int = _whole(0, 0)
    threshold: float = _share(0.0)
    sample: int = _whole(0, 0)
    drop_node: float = _share(0.0)
    drop_edge: float = _share(0.0)

    def __post_init__(self) -> None:
        _check(self, "consistency.")

    def weight_at(self, epoch: int) -> float:
        return self.weight * min(1.0, epoch / self.ramp) if self.ramp else self.weight


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of one training run.

    Args:
        epochs: the most passes over the training nodes.
        lr: Adam's learning rate.
        weight_decay: L2 on every parameter that is not structural.
        structural_weight_decay: L2 on the interventions' own parameters (the factors V); None = weight_decay,
            as in the authors' release.
        penalty_weight: the paper's lambda, the weight of the intervention's loss.
        patience: stop after this many epochs without progress, as the rule sees progress; 0 = never.
        rule: which epoch's weights to keep, see `conjoint.training.stopping`.
        see_test: must be true for a rule that looks at test nodes, so that nobody takes one by accident.
        clip: largest global norm of the gradient; None = no clipping.
        schedule: how the learning rate moves, see `SCHEDULES`.
        warmup: epochs in which the learning rate climbs to `lr`.
        seed: decides every random choice of the run.
        evaluate_every: evaluate the validation nodes every so many epochs (and after the last).
        field: "receptive" computes only what can reach the training nodes, "whole" everything,
            "auto" the cheaper of the two.
        row_normalise: divide each node's features by their sum: "always", "never", or "auto" = where no
            feature is negative, as sums of signed numbers mean nothing.
        class_weight: how much a label counts in the loss, by its class: "balanced" (n / (classes * n of the
            class) over the training nodes, as in scikit-learn), or numbers by class name, 1 for the others.
            Only ratios matter. None: all alike. The validation loss is weighted in the same way.
        consistency: train unlabelled nodes to agree with themselves; None = the paper's training.
    """

    epochs: int = _whole(1500, 1, "give a whole number of epochs, 1 or more")
    lr: float = _number(0.01, "the learning rate must be a number above 0, for example 0.01", lambda v: v > 0)
    weight_decay: float = _number(5e-4, "weight decay must be a number, 0 or more")
    structural_weight_decay: float | None = _number(None, "weight decay must be a number, 0 or more")
    penalty_weight: float = _number(
        0.01, "the penalty's weight (the paper's lambda) must be a number, 0 or more"
    )
    patience: int = _whole(100, 0, "give a whole number of epochs, or 0 to train all epochs")
    rule: str = _one_of("val-loss", *RULES)
    see_test: bool = _setting(False, lambda value: isinstance(value, bool), "must be true or false")
    clip: float | None = _number(
        None, "the largest gradient norm must be above 0; leave it out for none", lambda v: v > 0
    )
    schedule: str = _one_of("constant", *SCHEDULES)
    warmup: int = _whole(0, 0, "give a whole number of epochs, or 0 for no warm-up")
    seed: int = _whole(0, 0, "a seed is a whole number, 0 or more")
    evaluate_every: int = _whole(1, 1, "give a whole number of epochs, 1 or more")
    field: str = _one_of("auto", "auto", "whole", "receptive")
    row_normalise: str = _one_of("auto", "auto", "always", "never")
    class_weight: str | Mapping[str, float] | None = _setting(
        None, _is_class_weight, 'give "balanced", or numbers above 0 by class name'
    )
    consistency: Consistency | None = _setting(  # noqa: RUF009 (a field, as all here are)
        None, lambda value: isinstance(value, Consistency), "give a Consistency, or leave it out"
    )

    def __post_init__(self) -> None:
        _check(self)
        if self.saw_test and not self.see_test:
            raise InputError(
                f"rule={self.rule!r} picks the epoch by test accuracy, so its numbers estimate nothing; "
                "set see_test=true if that is what you want to show, or use 'val-loss'"
            )

    @property
    def saw_test(self) -> bool:
        """Whether the selection rule looks at test nodes; every number from such a run says so."""
        return RULES[self.rule].sees_test

    def blind(self) -> "TrainConfig":
        """For whatever is compared with others: the same training, told by validation nodes alone."""
        return replace(self, rule="val-loss" if self.saw_test else self.rule, see_test=False)

    @property
    def passes(self) -> int:
        """Stochastic passes per step."""
        return 1 if self.consistency is None else self.consistency.passes

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch (1-based), computed and not accumulated: resuming needs no state."""
        if epoch <= self.warmup:
            return self.lr * (epoch / (self.warmup + 1))
        done = (epoch - self.warmup - 1) / max(1, self.epochs - self.warmup - 1)
        return self.lr * max(LEAST_SHARE, SCHEDULES[self.schedule](done))


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """Settings of training in batches. What a run computes depends on them, not on the number of processes.

    Args:
        kind: "clusters" (parts of the graph with all edges inside) or "neighbours" (some training nodes with
            a bounded sample of their neighbourhood).
        size: nodes of a cluster batch, or training nodes of a neighbourhood batch; 0 = 32768 or 1024.
        joined: clusters joined in a batch, 2 or more.
        fanout: "neighbours": the most neighbours of a node, the first number nearest the targets; the last
            one serves all further layers.
        per_step: batches whose gradients are averaged for one step; the number of processes must divide it.
        penalty_neighbours: neighbours drawn per node to estimate the structural penalty.
        penalty_nodes: the most nodes per batch for that estimate ("neighbours").
    """

    kind: str = _one_of(MISSING, *BATCH_KINDS)
    size: int = _whole(0, 0)
    joined: int = _whole(10, 2)
    fanout: tuple[int, ...] = _setting(
        (10,),
        lambda value: (
            isinstance(value, tuple) and len(value) > 0 and all(type(n) is int and n >= 1 for n in value)
        ),
        "give whole numbers, 1 or more, for example 10,5",
    )
    per_step: int = _whole(1, 1)
    penalty_neighbours: int = _whole(16, 2)
    penalty_nodes: int = _whole(65_536, 2)

    def __post_init__(self) -> None:
        _check(self, "batch.")

    @property
    def nodes(self) -> int:
        return self.size or BATCH_SIZES[self.kind]

    def fanout_of(self, hops: int) -> tuple[int, ...]:
        """One number per hop."""
        return tuple(self.fanout[min(hop, len(self.fanout) - 1)] for hop in range(hops))


def config_from(mapping: Mapping[str, Any], source: str = "config") -> TrainConfig:
    """Settings by name, each checked; what is left out keeps its default."""
    settings = dict(mapping)
    if isinstance(settings.get("consistency"), Mapping):
        unknown = f"{source}: consistency.{{}} is unknown"
        settings["consistency"] = _from(Consistency, settings["consistency"], unknown)
    return _from(TrainConfig, settings, f"{source}: {{!r}} is not a training setting")


def batch_config_from(mapping: Mapping[str, Any], source: str = "batch") -> BatchConfig:
    settings = dict(mapping)
    if isinstance(settings.get("fanout"), list):
        settings["fanout"] = tuple(settings["fanout"])
    return _from(BatchConfig, settings, f"{source}: {{!r}} is no setting of batches")


def _from(kind: type[Kind], settings: Mapping[str, Any], unknown: str) -> Kind:
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise InputError(f"{unknown.format(name)}; there are {', '.join(known)}")
    return kind(**settings)


def config_to(config: TrainConfig | BatchConfig) -> dict[str, Any]:
    """The settings as TOML can say them: no null, so what is None is left out, and lists for tuples."""
    plain = {name: value for name, value in asdict(config).items() if value is not None}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def read_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source}: not valid TOML ({error}); mend that line") from None


def write_toml(document: Mapping[str, Any]) -> str:
    return tomli_w.dumps(document)
