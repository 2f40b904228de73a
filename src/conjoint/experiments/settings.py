"""The paper's settings for each model and data set, read from `settings.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import InputError


@dataclass(frozen=True)
class PaperSettings:
    """`model` goes to `zoo.build` and `zoo.input_features`, `train` and `rule` to `TrainConfig`."""

    model: dict[str, Any]
    train: dict[str, Any]
    rule: str = "val-loss"


def paper_settings(model: str, dataset: str) -> PaperSettings:
    """How the paper trains `model` on `dataset`; a data set that it does not name gets the common values."""
    table = _table()
    if "+" in model:  # several interventions at once, trained as one is
        return paper_settings(model.split("+")[0], dataset)
    if model not in table:
        raise InputError(f"model {model!r} has no settings of the paper; there are {', '.join(table)}")
    own = table[model]
    start = paper_settings(own["like"], dataset) if "like" in own else PaperSettings({}, {})
    layers = [own, own.get(dataset.removesuffix("-release"), {})]
    return PaperSettings(
        model=start.model | _joined(layers, "model"),
        train=start.train | _joined(layers, "train"),
        rule=own.get("rule", start.rule),
    )


def _joined(layers: list[dict[str, Any]], part: str) -> dict[str, Any]:
    return {key: value for layer in layers for key, value in layer.get(part, {}).items()}


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("conjoint.experiments").joinpath("settings.toml").read_text(encoding="utf-8"))
