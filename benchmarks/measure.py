"""Interleaved medians of wall time, and the peak memory of one step in a process of its own."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conjoint.kernels.memory import kept_memory

from .graphs import CASES, random_case
from .peers import STEPS, Step

ROOT = Path(__file__).resolve().parent.parent


@kept_memory()
def interleaved(
    steps: Mapping[str, Step], seconds: float, least: int = 3, most: int = 60
) -> dict[str, float]:
    """Median seconds of each step. Turns are taken one by one, so that a slow moment hits all alike; who has
    had `seconds` and `least` turns rests, so that a slow contestant does not leave the others few."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()  # warm up: transposed orders, page faults, Adam's state
    playing = dict(steps)
    while playing:
        for name, step in playing.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
        playing = {
            name: step
            for name, step in playing.items()
            if len(times[name]) < (most if sum(times[name]) < seconds else least)
        }
    return {name: statistics.median(found) for name, found in times.items()}


def in_subprocess(job: str, *arguments: str) -> dict[str, Any] | None:
    """Run a job of this file in a fresh process. None if it died (out of memory)."""
    command = [sys.executable, "-m", "benchmarks.measure", job, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment())
    if found.returncode:
        lines = found.stderr.strip().splitlines()
        print(f"  {job} {' '.join(arguments)}: {lines[-1] if lines else found.returncode}", file=sys.stderr)
        return None
    return json.loads(found.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def _resident(key: str) -> int:
    """VmRSS (now) or VmHWM (peak) of this process, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def _reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")


@kept_memory()
def memory(case_name: str, step_name: str) -> dict[str, Any]:
    """Peak bytes above the loaded graph, and the time of a step, after three steps."""
    case = random_case(int(case_name)) if case_name.isdigit() else CASES[case_name]()
    entries = case.graph.num_entries
    STEPS[step_name](random_case(2000))()  # what libraries load at first use is not counted
    _reset_peak()
    loaded = _resident("VmRSS")
    step = STEPS[step_name](case)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return {"bytes": _resident("VmHWM") - loaded, "seconds": min(times), "entries": entries}


def first_step(case_name: str) -> dict[str, Any]:
    """Seconds from the loaded graph to the end of the first step in a fresh process, imports not counted."""
    case = CASES[case_name]()
    start = time.perf_counter()
    STEPS["cat-mf"](case)()
    return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    jobs: dict[str, Callable[..., dict[str, Any]]] = {"memory": memory, "first_step": first_step}
    print(json.dumps(jobs[sys.argv[1]](*sys.argv[2:])))
