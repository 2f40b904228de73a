"""The benchmark of the docs: prints the table and keeps it as JSON.

    python -m benchmarks.run [--parts steps,memory,growth,start,training,members] [--seconds 20] [--out FILE]

Needs a quiet machine: OpenMP's threads wait by spinning, and under load all times mean nothing, although
ratios of one run still say something. Set CONJOINT_DATA to the folder with Pubmed and OGB-Arxiv's edges.
"""

import argparse
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch_geometric

from conjoint import kernels

from .floor import bandwidth, gemm_flops, serial_floor
from .graphs import CASES
from .measure import ROOT, environment, in_subprocess, interleaved
from .members import members
from .peers import STEPS
from .table import table

ALL_ROWS = ("cat-mf", "cat-sc", "gat", "pyg", "pyg_fd")
CONTESTANTS = {
    "cora": (*ALL_ROWS, "cat-mf-field"),
    "pubmed": (*ALL_ROWS, "cat-mf-field"),
    "arxiv-64": ALL_ROWS,
    "arxiv-256": ("cat-mf", "cat-sc", "gat"),  # PyG does not fit into memory at this width
}
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
EPOCHS = 200


def steps(seconds: float) -> dict[str, Any]:
    """Interleaved medians of full training steps."""
    found: dict[str, Any] = {}
    for name, contestants in CONTESTANTS.items():
        print(f"steps: {name}", file=sys.stderr, flush=True)
        case = CASES[name]()
        found[name] = interleaved({which: STEPS[which](case) for which in contestants}, seconds)
        if name == "arxiv-256":
            flops, moved = gemm_flops(), bandwidth()
            floor = serial_floor(case, flops, moved)
            found[name]["floor"] = sum(floor.values())
            found["machine"] = {"gemm_flops": flops, "bandwidth": moved, **floor}
    return found


def memory(seconds: float) -> dict[str, Any]:
    """Peak bytes above the loaded graph, each contestant in a process of its own."""
    found: dict[str, Any] = {}
    for name, contestants in CONTESTANTS.items():
        print(f"memory: {name}", file=sys.stderr, flush=True)
        measured = [which for which in contestants if which not in ("pyg_fd", "cat-mf-field")]
        found[name] = {which: in_subprocess("memory", name, which) for which in measured}
    return found


def growth(seconds: float) -> dict[str, Any]:
    """Time and memory of a step against the number of entries, with the exponent of a fitted power law."""
    rows = []
    for size in SIZES:
        print(f"growth: {size} edges", file=sys.stderr, flush=True)
        found = [in_subprocess("memory", str(size), "cat-mf") for _ in range(3)]
        sound = sorted((row for row in found if row is not None), key=lambda row: row["seconds"])
        if sound:
            rows.append(sound[len(sound) // 2])  # the median of three processes
    return {
        "rows": rows,
        "time_exponent": _exponent([(row["entries"], row["seconds"]) for row in rows]),
        "memory_exponent": _exponent([(row["entries"], row["bytes"]) for row in rows]),
    }


def _exponent(points: list[tuple[float, float]]) -> float:
    """Slope of the least-squares line through the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def start(seconds: float) -> dict[str, Any]:
    """First step in a fresh process, imports not counted; the median of three."""
    found = [in_subprocess("first_step", "cora") for _ in range(3)]
    return {"seconds": sorted(row["seconds"] for row in found if row is not None)[1]}


def training(seconds: float) -> dict[str, Any]:
    """Whole processes, imports and all: `conjoint train cora` and a plain PyG script of as many epochs."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        fixed = ("--seeds", "1", "--no-plots", "--set", f"epochs={EPOCHS}", "--set", "patience=0")
        commands = {
            "conjoint": ("-m", "conjoint", "train", "cora", *fixed, "--out", f"{folder}/run"),
            "pyg": ("-m", "benchmarks.pyg_train", str(EPOCHS)),
        }
        for name, command in commands.items():
            print(f"training: {name}", file=sys.stderr, flush=True)
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, *command],
                check=True,
                capture_output=True,
                cwd=ROOT,
                env=environment(),
            )
            found[name] = time.perf_counter() - begin
    return {"epochs": EPOCHS, **found}


PARTS: dict[str, Callable[[float], dict[str, Any]]] = {
    "steps": steps,
    "memory": memory,
    "growth": growth,
    "start": start,
    "training": training,
    "members": lambda seconds: members(),
}


def machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": model,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "kernels": kernels.status()["variant"],
        "load_before": os.getloadavg()[0],
    }


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--parts", default=",".join(PARTS), help="which parts to run")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of turns for each contestant on each graph"
    )
    parser.add_argument("--out", type=Path, help="the JSON file; default results/benchmarks/<date>-<n>.json")
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": machine()}
    for part in options.parts.split(","):
        found[part] = PARTS[part](options.seconds)
    target = options.out or next_free(ROOT / "results" / "benchmarks", found["machine"]["date"][:10])
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part")
    partial.write_text(json.dumps(found, indent=1) + "\n")
    os.replace(partial, target)
    print(table(found))
    print(f"\nkept in {target}")


def next_free(folder: Path, day: str) -> Path:
    """The first number of that day which no run has."""
    paths = (folder / f"{day}-{number}.json" for number in itertools.count(1))
    return next(path for path in paths if not path.exists())


if __name__ == "__main__":
    main()
