"""Made-up rows for every experiment of the grid: some seeds, most models, numbers that differ."""

from typing import Any

from conjoint.experiments.grid import experiment, experiment_names
from fake_runs import made_up


def rows_of(name: str, seeds: int = 3) -> list[dict[str, Any]]:
    """The first seeds of an experiment, each model one point better than the one before."""
    wanted = [spec for spec in experiment(name).specs if spec.seed < seeds]
    models = list(dict.fromkeys(spec.model for spec in wanted))
    return [made_up(spec, 0.7 + 0.01 * models.index(spec.model) + 0.001 * spec.seed**2) for spec in wanted]


def rows_of_everything() -> list[dict[str, Any]]:
    """All experiments on the small graphs, but without one model, so that there is a gap to show.

    Seeds shift each model a little differently, so that differences vary as real ones do.
    """
    rows = {row["key"]: row for name in experiment_names() for row in rows_of(name)}
    small = [
        row for row in rows.values() if row["model"] != "monet" and row["dataset"] in ("cora", "citeseer")
    ]
    for row in small:
        row["test_accuracy"] += 0.0003 * (row["seed"] * sum(map(ord, row["model"])) % 7)
    return small
