"""conjoint doctor: what is installed, what is in use, and what would make it faster."""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from .. import __version__
from ..data.benchmarks import VARIABLE, cache_folder
from ..kernels import status
from .output import answer, table

PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "polars", "safetensors")
OPTIONAL = ("gensim", "networkx", "pandas")


def work(options: argparse.Namespace) -> None:
    facts = {
        "conjoint": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "interpreter": sys.executable,
        "packages": {name: _version(name) for name in (*PACKAGES, *OPTIONAL)},
        "kernels": status(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "devices": ["cpu", *(f"cuda:{k}" for k in range(torch.cuda.device_count()))],
        VARIABLE: os.environ.get(VARIABLE),
        "cache": str(cache_folder()),
    }
    answer(options, facts, table([{"what": name, "found": _shown(value)} for name, value in _flat(facts)]))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):  # not every system tells
        return None


def _flat(facts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _flat(value, "" if name == "packages" else f"{name}: ")
        else:
            yield prefix + name, value


def _shown(value: Any) -> str:
    if value is None:
        return "not set or not installed"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
