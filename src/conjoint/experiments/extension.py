"""The one way in for experiments that are not part of the package: the folder `research` of a checkout.

Its `__init__.py` defines EXTENSION, a value of the class below; the package reads nothing else of it.
The checkout is the one that this package is run from (an editable install), or else the current folder.
Worker processes look in the same places.
"""

import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ..graph.graph import Graph
from ..graph.splits import Split
from .rows import RunSpec

REMEDY = "clone the repository and run it there"


@dataclass(frozen=True)
class Extension:
    """What a checkout adds to the paper's own tables. From an installed package there is nothing to add."""

    # Files in the form of paper.toml, which may also have [settings.MODEL] in the form of settings.toml.
    grids: Sequence[Path] = ()
    # Models that are no single network of the zoo, by name: from a run to the numbers of its row.
    learners: Mapping[str, Callable[[RunSpec, Graph, Split], dict[str, Any]]] = field(default_factory=dict)
    # What a run's `variant` does to the graph; its second argument is that table, the third the run's seed.
    change: Callable[[Graph, Mapping[str, Any], int], Graph] | None = None
    # Further kinds of tables, functions like those in `tables.TABLES`, by name.
    tables: Mapping[str, Callable[..., Iterator[Any]]] = field(default_factory=dict)
    # Trains the network of the report's attention explorer and describes it.
    portrait: Callable[[], dict[str, Any]] | None = None


@cache
def extension() -> Extension:
    """The extension of the checkout that is at hand; an empty one where there is none."""
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        if _is_checkout(root):
            return _load(root / "research")
    return Extension()


def _is_checkout(root: Path) -> bool:
    """Whether it is a checkout of this project: a folder called research may be anything elsewhere."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return project["project"]["name"] == "conjoint" and (root / "research" / "__init__.py").is_file()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _load(folder: Path) -> Extension:
    """Import the package `research` from this very folder, whatever else sys.path may have of that name."""
    found = getattr(sys.modules.get("research"), "EXTENSION", None)  # a script of that folder is running
    if isinstance(found, Extension):
        return found
    spec = spec_from_file_location("research", folder / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["research"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EXTENSION
