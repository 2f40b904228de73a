"""Rows without training: what a worker process does in the tests of the runner, and made-up results."""

import os
import time
from dataclasses import asdict
from typing import Any

from conjoint.experiments.rows import RunSpec

NOTES = "CONJOINT_TEST_NOTES"  # a file in which every started and ended run leaves a line


def made_up(spec: RunSpec, test_accuracy: float = 0.8, **more: Any) -> dict[str, Any]:
    """A row as `execute` makes it."""
    row: dict[str, Any] = {"key": spec.key, **asdict(spec), "saw_test": False}
    row |= {"test_accuracy": test_accuracy, "all_accuracy": test_accuracy - 0.01, "val_accuracy": 0.79}
    row |= {"best_epoch": 10, "epochs": 110, "parameters": 1000, "seconds": 2.0, "fit_seconds": 1.1}
    row |= {"peak_mib": 400.0, "grown_mib": 30.0, "made_with": {"cpu": "AVX2"}}
    row["release"] = {"rule": "release", "reading": 2, "saw_test": True, "best_epoch": 7}
    row["release"] |= {"test_accuracy": test_accuracy + 0.01, "all_accuracy": test_accuracy}
    return row | more


def pretend(spec: RunSpec, root: str | None) -> dict[str, Any]:
    """Takes a fifth of a second, and leaves a trace of having been done."""
    _note(f"start {spec.seed}")
    time.sleep(0.2)
    _note(f"end {spec.seed}")
    return made_up(spec, pid=os.getpid(), threads=os.environ.get("OMP_NUM_THREADS"), root=root)


def at_once(spec: RunSpec, root: str | None) -> dict[str, Any]:
    """No trace, hardly any time, and always the same row."""
    time.sleep(0.01)
    return made_up(spec)


def _note(text: str) -> None:
    with open(os.environ[NOTES], "a") as file:
        file.write(text + "\n")


def specs(count: int, model: str = "gat", **more: Any) -> list[RunSpec]:
    return [RunSpec(model=model, dataset="cora", split="public", seed=seed, **more) for seed in range(count)]
