"""The grids in the TOML files beside this one: from an experiment's name to the list of its runs."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from ..errors import InputError
from .axis import Axis, joined
from .controls import CONTROLS
from .settings import paper_settings
from .spec import RunSpec

FILES = ("paper.toml", "robustness.toml", "recipe.toml")


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper: its runs, in the order in which they are done."""

    name: str
    title: str
    metric: str
    specs: tuple[RunSpec, ...]
    published: str | None  # which table of published numbers stands beside it
    isolated: bool  # each run in a process of its own
    axis: Axis | None  # what its cells' `levels` are levels of
    references: tuple[str, ...]  # models that the others are compared with at every level
    timed: bool  # whether a table of times stands beside the accuracies


@cache
def experiment(name: str, quick: bool = False) -> Experiment:
    """The experiment called `name`; `quick` keeps only what takes minutes."""
    about = _about(name)
    source = _about(about["same_runs"]) if "same_runs" in about else about
    keep = source.get("quick", {}) if quick else {}
    wanted = set(_models(about["models"])) if "models" in about else None
    axis = Axis(**source["axis"]) if "axis" in source else None
    specs = [
        spec
        for cell in source["cells"]
        for spec in _expand(cell, axis, keep)
        if wanted is None or spec.model in wanted
    ]
    return Experiment(
        name=name,
        title=about["title"],
        metric=about["metric"],
        specs=tuple({spec.key: spec for spec in specs}.values()),
        published=about.get("published"),
        isolated=any(cell.get("isolated", False) for cell in source["cells"]),
        axis=axis,
        references=tuple(about.get("references", ())),
        timed=about.get("timed", False),
    )


def experiment_names() -> list[str]:
    return list(_section("experiments"))


def paper() -> dict[str, Any]:
    """`paper.toml` as it stands."""
    return _read("paper.toml")


def _section(name: str) -> dict[str, Any]:
    """A section of all files together."""
    return {key: value for file in FILES for key, value in _read(file).get(name, {}).items()}


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("conjoint.experiments").joinpath(name).read_text(encoding="utf-8"))


def published(table: str, model: str, dataset: str) -> tuple[float, float] | None:
    """Mean and deviation as the paper prints them, or None where it prints none."""
    numbers = paper()["published"][table]
    if model not in numbers or dataset not in numbers["columns"]:
        return None
    mean, deviation = numbers[model][numbers["columns"].index(dataset)]
    return mean, deviation


def _about(name: str) -> dict[str, Any]:
    known = _section("experiments")
    if name not in known:
        raise InputError(f"experiment {name!r} is not known; choose one of {', '.join(known)}")
    return known[name]


def _models(named: str | list[str]) -> list[str]:
    return _section("groups")[named] if isinstance(named, str) else named


def _expand(cell: Mapping[str, Any], axis: Axis | None, keep: Mapping[str, Any]) -> Iterator[RunSpec]:
    """Data sets outermost and seeds before models, so that each further pass makes every cell firmer."""
    models = [name for name in _models(cell["models"]) if name in keep.get("models", [name])]
    datasets = [name for name in cell["datasets"] if name in keep.get("datasets", [name])]
    seeds = range(min(cell["seeds"], keep.get("seeds", cell["seeds"])))
    levels = [{}] if axis is None else [axis.parts(level) for level in cell["levels"]]
    always = paper()["defaults"]["train"]
    for dataset, seed, model in product(datasets, seeds, models):
        usual = paper_settings(model, dataset)
        for level in levels:
            train = joined(always | usual.train | cell.get("train", {}), level.get("train_settings", {}))
            spec = RunSpec(
                model=model,
                dataset=dataset,
                source=cell.get("source", {}).get(dataset),
                features=cell.get("features"),
                split=cell["split"],
                # Published splits are what they are; a random one is drawn anew for every seed.
                split_seed=seed if cell["split"] in RANDOM_SPLITS else 0,
                split_settings=cell.get("split_settings", {}) | level.get("split_settings", {}),
                seed=seed,
                rule=cell.get("rule", usual.rule),
                model_settings=usual.model | cell.get("model", {}) | level.get("model_settings", {}),
                train_settings=train | keep.get("train", {}),
                variant=joined(cell.get("variant", {}), level.get("variant", {})),
            )
            # Controls are no networks: they have no training, and choose by validation accuracy.
            yield replace(spec, train_settings={}, rule="val-accuracy") if model in CONTROLS else spec


RANDOM_SPLITS = ("per-class", "fraction")
