"""What may vary in a search, as data, and how a point of it is read as settings of network and training."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

MODELS = (
    "spread-trust",
    "gated-trust",
    "gat",
    "cat-i-zero",
    "cat-i-mf",
    "cat-e-mf",
    "cat-i-smooth",
    "cat-e-smooth",
    "cat-i-spectral",
    "cat-e-spectral",
)
MODEL_SETTINGS = ("hidden", "dropout")
CONSISTENCY_SETTINGS = ("passes", "weight", "temperature")

Point = dict[str, Any]


def distributions(models: Sequence[str] = MODELS) -> "dict[str, BaseDistribution]":
    """Ranges around what the benchmarks' papers use; rates and weights on a logarithmic scale."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    return {
        "model": CategoricalDistribution(tuple(models)),
        "hidden": CategoricalDistribution((8, 16, 32)),
        "dropout": FloatDistribution(0.2, 0.8, step=0.1),
        "lr": FloatDistribution(0.002, 0.03, log=True),
        "weight_decay": FloatDistribution(1e-5, 5e-3, log=True),
        "consistent": CategoricalDistribution((True, False)),
        "passes": CategoricalDistribution((2, 4)),
        "weight": FloatDistribution(0.3, 5.0, log=True),
        "temperature": FloatDistribution(0.3, 0.7),
    }


def settings_at(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(network with its name, training) at a point of the space."""
    network = {"name": point["model"], **{name: point[name] for name in MODEL_SETTINGS}}
    training: dict[str, Any] = {name: point[name] for name in ("lr", "weight_decay")}
    if point["consistent"]:
        training["consistency"] = {name: point[name] for name in CONSISTENCY_SETTINGS}
    return network, training
