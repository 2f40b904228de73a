"""One training run as a value. What it is decides its key; the key decides whether it was done already."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides the numbers of a run, and nothing else.

    Args:
        model: a name of `conjoint.nn.zoo`.
        dataset, source, features: arguments of `conjoint.data.load`.
        split, split_seed, split_settings: arguments of `conjoint.data.make_split`.
        seed: of the initial weights and of training.
        rule: which epoch is kept.
        model_settings: for `zoo.build`. Settings left out have their defaults.
        train_settings: for `TrainConfig`, without seed and rule.
        variant: named changes of the graph before training, see `conjoint.experiments.variants`.
    """

    model: str
    dataset: str
    split: str
    seed: int
    split_seed: int = 0
    source: str | None = None
    features: str | None = None
    rule: str = "val-loss"
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    train_settings: Mapping[str, Any] = field(default_factory=dict)
    variant: Mapping[str, Any] = field(default_factory=dict)
    split_settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The same for equal specs on any machine and day; numbers count by value, so 1 and 1.0 are one."""
        parts = asdict(self)
        if not parts["split_settings"]:
            del parts["split_settings"]  # younger than the first rows, whose keys must stand
        text = json.dumps(_plain(parts), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        return f"{self.model} on {self.dataset}, {self.split} {self.split_seed}, seed {self.seed}"


def spec_from(row: Mapping[str, Any]) -> RunSpec:
    """The spec that a row was made from."""
    given = {part.name: row[part.name] for part in fields(RunSpec) if part.name in row}
    return RunSpec(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
