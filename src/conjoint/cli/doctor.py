"""conjoint doctor: what is installed, what is in use, and what would make it faster."""

import argparse
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .parser import add_output_options

SUMMARY = "what is installed and in use: versions, kernels, threads, folders"
DESCRIPTION = """\
Show what this installation runs on: versions, whether the compiled kernels are in use
(and if not, why and what to do), threads, memory, devices, and the folders for data.
Attach its output when you report a problem."""

EXAMPLES = """\
examples:
  conjoint doctor
  conjoint doctor --json
  CONJOINT_KERNELS=0 conjoint doctor      as it would be without the kernels
"""

PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "polars", "safetensors")
OPTIONAL = ("gensim", "networkx", "pandas")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from .terminal import print_json, table

    facts = examine()
    if options.json:
        print_json(facts)
        return
    rows = [{"what": name, "found": _shown(value)} for name, value in _flat(facts)]
    print(table(rows))


def examine() -> dict[str, Any]:
    import platform
    import sys

    import torch

    from .. import __version__
    from ..data.folders import VARIABLE, cache_folder
    from ..kernels import status

    devices = ["cpu", *(f"cuda:{k}" for k in range(torch.cuda.device_count()))]
    return {
        "conjoint": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "interpreter": sys.executable,
        "packages": {name: _version(name) for name in (*PACKAGES, *OPTIONAL)},
        "kernels": status(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "devices": devices,
        VARIABLE: os.environ.get(VARIABLE),
        "cache": str(cache_folder()),
    }


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


def _flat(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if name == "packages":
            out += value.items()
        elif isinstance(value, dict):
            out += [(f"{name}: {key}", inner) for key, inner in value.items()]
        else:
            out.append((name, value))
    return out


def _shown(value: Any) -> str:
    if value is None:
        return "not set or not installed"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
