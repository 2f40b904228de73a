"""How to train, as one frozen value: the paper's settings are the defaults, TOML is the form on disk."""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import tomli_w

from ..errors import InputError
from .consistency import Consistency
from .schedule import SCHEDULES
from .stopping import RULES


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of one training run.

    Args:
        epochs: at most so many passes.
        lr: Adam's learning rate.
        weight_decay: L2 on every parameter that is not structural.
        structural_weight_decay: L2 on the interventions' own parameters (the factors V); None = weight_decay,
            as in the authors' release.
        penalty_weight: the paper's lambda, the weight of the intervention's loss.
        patience: stop after so many epochs without progress, as the rule sees progress; 0 = never.
        rule: which epoch's weights to keep, see `conjoint.training.stopping`.
        see_test: must be true for a rule that looks at test nodes, so that nobody takes one by accident.
        clip: largest global norm of the gradient; None = no clipping.
        schedule: how the learning rate moves, see `conjoint.training.schedule`.
        warmup: epochs in which the learning rate climbs to `lr`.
        seed: decides every random choice of the run.
        evaluate_every: look at the validation nodes every so many epochs (and after the last).
        field: "receptive" computes only what can reach the training nodes, "whole" everything,
            "auto" the cheaper of the two.
        row_normalise: divide each node's features by their sum: "always", "never", or "auto" = where no
            feature is negative, as sums of signed numbers mean nothing.
        consistency: train unlabelled nodes to agree with themselves, see `Consistency`; None = the paper's
            training.
    """

    epochs: int = 1500
    lr: float = 0.01
    weight_decay: float = 5e-4
    structural_weight_decay: float | None = None
    penalty_weight: float = 0.01
    patience: int = 100
    rule: str = "val-loss"
    see_test: bool = False
    clip: float | None = None
    schedule: str = "constant"
    warmup: int = 0
    seed: int = 0
    evaluate_every: int = 1
    field: str = "auto"
    row_normalise: str = "auto"
    consistency: Consistency | None = None

    def __post_init__(self) -> None:
        for name, (kind, allowed, remedy) in _CHECKS.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if not _is(value, kind) or not allowed(value):
                raise InputError(f"{name}={value!r}: {remedy}")
        if self.consistency is not None and not isinstance(self.consistency, Consistency):
            raise InputError(f"consistency={self.consistency!r}: give a Consistency, or leave it out")
        if RULES[self.rule].sees_test and not self.see_test:
            raise InputError(
                f"rule={self.rule!r} picks the epoch by test accuracy, so its numbers estimate nothing; "
                "set see_test=true if that is what you want to show, or use 'val-loss'"
            )

    @property
    def saw_test(self) -> bool:
        """Whether the selection rule looks at test nodes; every number from such a run says so."""
        return RULES[self.rule].sees_test


Check = tuple[type, Callable[[Any], bool], str]


def _one_of(*names: str) -> Check:
    return str, lambda value: value in names, f"choose one of {', '.join(names)}"


def _number_from_zero(what: str) -> Check:
    return float, lambda value: value >= 0, f"{what} must be a number, 0 or more"


def _count(least: int, remedy: str) -> Check:
    return int, lambda value: least <= value < 2**63, remedy


_OPTIONAL = ("structural_weight_decay", "clip")
_CHECKS: dict[str, Check] = {
    "epochs": _count(1, "give a whole number of epochs, 1 or more"),
    "lr": (float, lambda value: value > 0, "the learning rate must be a number above 0, for example 0.01"),
    "weight_decay": _number_from_zero("weight decay"),
    "structural_weight_decay": _number_from_zero("weight decay"),
    "penalty_weight": _number_from_zero("the penalty's weight (the paper's lambda)"),
    "patience": _count(0, "give a whole number of epochs, or 0 to train all epochs"),
    "rule": _one_of(*RULES),
    "see_test": (bool, lambda value: True, "must be true or false"),
    "clip": (
        float,
        lambda value: value > 0,
        "the largest gradient norm must be above 0; leave it out for none",
    ),
    "schedule": _one_of(*SCHEDULES),
    "warmup": _count(0, "give a whole number of epochs, or 0 for no warm-up"),
    "seed": _count(0, "a seed is a whole number, 0 or more"),
    "evaluate_every": _count(1, "give a whole number of epochs, 1 or more"),
    "field": _one_of("auto", "whole", "receptive"),
    "row_normalise": _one_of("auto", "always", "never"),
}


def _is(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def config_from(mapping: Mapping[str, Any], source: str = "config") -> TrainConfig:
    """Settings by name, each checked; what is left out keeps its default."""
    known = [f.name for f in fields(TrainConfig)]
    for name in mapping:
        if name not in known:
            raise InputError(f"{source}: {name!r} is not a training setting; there are {', '.join(known)}")
    settings = dict(mapping)
    if isinstance(settings.get("consistency"), Mapping):
        settings["consistency"] = consistency_from(settings["consistency"], source)
    return TrainConfig(**settings)


def consistency_from(mapping: Mapping[str, Any], source: str = "config") -> Consistency:
    known = [f.name for f in fields(Consistency)]
    for name in mapping:
        if name not in known:
            raise InputError(f"{source}: consistency.{name} is unknown; there are {', '.join(known)}")
    return Consistency(**mapping)


def config_to(config: TrainConfig) -> dict[str, Any]:
    """The settings as TOML can say them: TOML has no null, so what is None is left out."""
    return {name: value for name, value in asdict(config).items() if value is not None}


def read_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source}: not valid TOML ({error}); mend that line") from None


def write_toml(document: Mapping[str, Any]) -> str:
    return tomli_w.dumps(document)
