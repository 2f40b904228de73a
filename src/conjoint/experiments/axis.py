"""What an experiment varies besides model, graph and seed: a number of the spec, and how to show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .spec import RunSpec


@dataclass(frozen=True)
class Axis:
    """`path` leads to the number ("variant.add-edges.share"); a spec without it is at `default`."""

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
        if found is None:
            assert self.default is not None, self.path
            return self.default
        return float(found)

    def parts(self, level: float) -> dict[str, Any]:
        """The level as the nested tables that the spec is to be joined with; none at the default."""
        if level == self.default:
            return {}
        inner: Any = level
        for word in reversed(self.path.split(".")):
            inner = {word: inner}
        return inner

    def text(self, level: float) -> str:
        return self.header.format(level=level)


def joined(settings: Mapping[str, Any], level: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of a level; where both are tables, the level changes only what it names."""
    both = dict(settings)
    for name, value in level.items():
        before = both.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = joined(before, value)
        both[name] = value
    return both


def levels_in(axis: Axis, specs: tuple[RunSpec, ...]) -> list[float]:
    """Every level that the runs have, in rising order."""
    return sorted({axis.level(vars(spec)) for spec in specs})
