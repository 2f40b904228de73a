"""Made-up rows for every experiment of the grid: some seeds, most models, numbers that differ."""

from dataclasses import replace
from typing import Any

from conjoint.experiments.grid import experiment, experiment_names
from conjoint.experiments.rows import RunSpec
from conjoint.experiments.tables import Table
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


def line(table: Table, model: str) -> dict[str, str]:
    """The line of one model, by column."""
    [found] = [row for row in table.rows if row[0].text == model]
    return dict(zip(table.headers, (entry.text for entry in found), strict=True))


def cora(model: str) -> RunSpec:
    """A few epochs of a model on the Cora that ships with the package."""
    [spec] = [
        spec
        for spec in experiment("random-splits").specs
        if (spec.model, spec.dataset, spec.seed) == (model, "cora", 1)
    ]
    return replace(spec, train_settings={**spec.train_settings, "epochs": 3, "patience": 0})
