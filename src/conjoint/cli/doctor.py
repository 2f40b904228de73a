"""conjoint doctor: what is installed, what is in use, and what would make it faster."""

import argparse
import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import __version__
from ..benchmark_files import VARIABLE, cache_folder
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
        "devices": ["cpu", *(f"cuda:{k}" for k in range(_cuda_devices()))],
        VARIABLE: os.environ.get(VARIABLE),
        "cache": str(cache_folder()),
    }
    answer(options, facts, table([{"what": name, "found": _shown(value)} for name, value in _flat(facts)]))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cuda_devices() -> int:
    """Asked of the driver, where torch was built for it: importing torch would take a second."""
    spec, count = find_spec("torch"), ctypes.c_int()
    parts = Path("" if spec is None else spec.origin or "").parent / "lib"
    if not any(parts.glob("*torch_cuda*")):
        return 0
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


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
