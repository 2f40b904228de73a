"""Several seeds in one call: a number with its error bar."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..nn.model import NodeModel
from .config import TrainConfig
from .loop import OnEpoch, fit
from .predictions import evaluate


@dataclass(frozen=True)
class Estimate:
    """Mean, sample standard deviation and the half-width of the 95% confidence interval of the mean.

    One value alone has no deviation: `std` and `ci95` are None.
    """

    mean: float
    std: float | None
    ci95: float | None
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.std is None else f"{self.mean:.4f} ± {self.std:.4f}"


@dataclass(frozen=True, eq=False)
class Summary:
    """One result row per seed, and an estimate of each number in them."""

    rows: list[dict[str, Any]]
    estimates: dict[str, Estimate]

    def __getitem__(self, metric: str) -> Estimate:
        return self.estimates[metric]


METRICS = ("val_loss", "train_accuracy", "val_accuracy", "test_accuracy", "all_accuracy", "test_macro_f1")


def estimate(values: Sequence[float]) -> Estimate:
    """Student's t, as the number of seeds is small."""
    from scipy import stats

    count = len(values)
    if count == 0:
        raise InputError("values is empty: no runs to summarise; give at least one seed")
    mean = float(np.mean(values))
    if count == 1:
        return Estimate(mean, None, None, 1)
    std = float(np.std(values, ddof=1))
    return Estimate(mean, std, float(stats.t.ppf(0.975, count - 1)) * std / float(np.sqrt(count)), count)


def summarise(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str] = METRICS) -> Summary:
    """An estimate of each metric over the rows, a pure function of them."""
    found = {name: estimate([row[name] for row in rows]) for name in metrics if not rows or name in rows[0]}
    return Summary([dict(row) for row in rows], found)


def fit_seeds(
    build_model: Callable[[int], NodeModel],
    graph: Graph,
    split: Split | Callable[[int], Split],
    config: TrainConfig,
    seeds: Iterable[int],
    *,
    progress: OnEpoch | None = None,
) -> Summary:
    """Train and evaluate once per seed.

    Args:
        build_model: seed -> model with initial weights drawn from that seed.
        split: one split for all, or seed -> split.
    """
    graph = as_graph(graph)
    rows = []
    for seed in seeds:
        part = split if isinstance(split, Split) else split(seed)
        fitted = fit(build_model(seed), graph, part, replace(config, seed=seed), progress=progress)
        rows.append(evaluate(fitted, graph, part))
    return summarise(rows)
