"""Experiments as data: from a section of `paper.toml` (or of a grid in research) to the list of its runs.

`settings.toml` has the settings of each model and data set, as the paper gives them.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..nn import zoo
from .extension import REMEDY, extension
from .rows import Row, RunSpec, select

PAPER, SETTINGS = (Path(__file__).with_name(name) for name in ("paper.toml", "settings.toml"))
RANDOM_SPLITS = ("per-class", "fraction")


@dataclass(frozen=True)
class Axis:
    """What is varied besides model, graph and seed: a number of the spec, and how to show it.

    `path` leads to the number ("variant.add-edges.share"); a spec without it is at `default`.
    """

    path: str
    title: str  # along the axis of a figure
    header: str  # over the column of a table, a format of `level`
    default: float | None = None
    log: bool = False
    base: float | None = None  # every model is also compared with itself at this level

    def level(self, row: Mapping[str, Any]) -> float:
        """Where a row (or a spec as a mapping) stands on the axis."""
        found: Any = row
        for word in self.path.split("."):
            found = found.get(word) if isinstance(found, Mapping) else None
        found = self.default if found is None else found
        assert found is not None, self.path
        return float(found)

    def parts(self, level: float) -> dict[str, Any]:
        """The level as the nested tables that the spec is to be joined with; none at the default."""
        inner: Any = level
        for word in reversed(self.path.split(".")):
            inner = {word: inner}
        return {} if level == self.default else inner

    def column(self, row: Mapping[str, Any]) -> str:
        return self.header.format(level=self.level(row))


@dataclass(frozen=True)
class Experiment:
    """One table or figure: its runs in the order in which they are done, and how they are shown."""

    name: str
    title: str
    metric: str
    specs: tuple[RunSpec, ...]
    isolated: bool  # each run in a process of its own
    axis: Axis | None  # what its cells' `levels` are levels of
    about: Mapping[str, Any]  # its section as it stands: the tables and figures read their own entries there

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(spec.model for spec in self.specs))

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(spec.dataset for spec in self.specs))

    def own(self, rows: Iterable[Row]) -> list[Row]:
        """Those of the rows that are runs of this experiment."""
        return select(rows, (spec.key for spec in self.specs))

    def published(self, model: str, dataset: str) -> tuple[float, float] | None:
        """What the paper prints beside it, or None where it prints nothing."""
        return published(self.about["published"], model, dataset) if "published" in self.about else None


@cache
def experiment(name: str, quick: bool = False) -> Experiment:
    """The experiment called `name`; `quick` keeps only what takes minutes."""
    about = _about(name)
    source = _about(about["same_runs"]) if "same_runs" in about else about
    keep = source.get("quick", {}) if quick else {}
    axis = Axis(**source["axis"]) if "axis" in source else None
    specs = [spec for cell in source["cells"] for spec in _expand(cell, axis, keep)]
    if "models" in about:
        wanted = models_in(about["models"])
        specs = [spec for spec in specs if spec.model in wanted]
    return Experiment(
        name=name,
        title=about["title"],
        metric=about["metric"],
        specs=tuple({spec.key: spec for spec in specs}.values()),
        isolated=any(cell.get("isolated", False) for cell in source["cells"]),
        axis=axis,
        about=about,
    )


def experiment_names() -> list[str]:
    return list(_section("experiments"))


def grids() -> list[tuple[str, list[str]]]:
    """The title of each grid, and the names of its experiments."""
    return [(grid["title"], list(grid["experiments"])) for grid in map(read_toml, _grids())]


def published(table: str, model: str, dataset: str) -> tuple[float, float] | None:
    """Mean and deviation as the paper prints them, or None where it prints none."""
    numbers = read_toml(PAPER)["published"][table]
    if model not in numbers or dataset not in numbers["columns"]:
        return None
    return tuple(numbers[model][numbers["columns"].index(dataset)])


def models_in(named: str | list[str]) -> list[str]:
    """A list of models, or the group of that name."""
    return _section("groups")[named] if isinstance(named, str) else named


def _grids() -> tuple[Path, ...]:
    return (PAPER, *extension().grids)


def _section(name: str) -> dict[str, Any]:
    """A section of all grids together."""
    return {key: value for grid in _grids() for key, value in read_toml(grid).get(name, {}).items()}


def _about(name: str) -> dict[str, Any]:
    known = _section("experiments")
    if name not in known:
        more = "" if extension().grids else f", or {REMEDY}: it has more experiments than the package"
        raise InputError(f"experiment {name!r} is not known; choose one of {', '.join(known)}{more}")
    return known[name]


def _expand(cell: Mapping[str, Any], axis: Axis | None, keep: Mapping[str, Any]) -> Iterator[RunSpec]:
    """Data sets outermost and seeds before models, so that each further pass makes every cell firmer."""
    models = [name for name in models_in(cell["models"]) if name in keep.get("models", [name])]
    datasets = [name for name in cell["datasets"] if name in keep.get("datasets", [name])]
    first = cell.get("first_seed", 0)
    seeds = range(first, first + min(cell["seeds"], keep.get("seeds", cell["seeds"])))
    levels = [{}] if axis is None else [axis.parts(level) for level in cell["levels"]]
    always = read_toml(PAPER)["defaults"]["train"]
    for dataset, seed, model, level in product(datasets, seeds, models, levels):
        usual = paper_settings(model, dataset)
        parts = {
            "source": cell.get("source", {}).get(dataset),
            "features": cell.get("features"),
            "split": cell["split"],
            # Published splits are what they are; a random one is drawn anew for every seed.
            "split_seed": seed if cell["split"] in RANDOM_SPLITS else 0,
            "split_settings": cell.get("split_settings", {}),
            "rule": cell.get("rule", usual.rule),
            "model_settings": usual.model | cell.get("model", {}),
            "train_settings": always | usual.train | cell.get("train", {}),
            "variant": cell.get("variant", {}),
        }
        parts = _joined(parts, level)
        parts["train_settings"] = parts["train_settings"] | keep.get("train", {}) if usual.trained else {}
        yield RunSpec(model=model, dataset=dataset, seed=seed, **parts)


def _joined(settings: Mapping[str, Any], level: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of a level; where both are tables, the level changes only what it names."""
    both = dict(settings)
    for name, value in level.items():
        before = both.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = _joined(before, value)
        both[name] = value
    return both


@dataclass(frozen=True)
class PaperSettings:
    """`model` goes to `zoo.build` and `zoo.input_graph`, `train` and `rule` to `TrainConfig`."""

    model: dict[str, Any]
    train: dict[str, Any]
    rule: str = "val-loss"
    trained: bool = True  # False: nothing is trained by `TrainConfig`, so a run has no such settings


def paper_settings(model: str, dataset: str) -> PaperSettings:
    """How the paper trains `model` on `dataset`; a data set that it does not name gets the common values."""
    table = read_toml(SETTINGS) | _section("settings")
    try:  # a body is trained alike around all interventions
        own = table.get(model) or table[zoo.parse(model).body]
    except (InputError, KeyError):
        message = f"model {model!r} has no settings of the paper; there are {', '.join(table)}"
        raise InputError(message) from None
    start = paper_settings(own["like"], dataset) if "like" in own else PaperSettings({}, {})
    there = own.get(dataset.removesuffix("-release"), {})  # the authors' edition, as `load` names it
    return PaperSettings(
        model=start.model | own.get("model", {}) | there.get("model", {}),
        train=start.train | own.get("train", {}) | there.get("train", {}),
        rule=own.get("rule", start.rule),
        trained=own.get("trained", start.trained),
    )


@cache
def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
