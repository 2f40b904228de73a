"""Many training steps in one process, with its memory, open files and threads looked at on the way.

    python -m faults.leaks --steps 10000      (with src and tests on PYTHONPATH); prints one JSON line

Each round is a whole life of a run: start a folder, train, reload, predict, and forget everything.
"""

import argparse
import gc
import json
import os
import resource
import tempfile
import threading
from pathlib import Path
from typing import Any

EPOCHS = 100  # of a round; every epoch is a step and an evaluation


def look() -> dict[str, float]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    tasks = len(os.listdir("/proc/self/task"))
    return {
        "rss_mib": round(pages * resource.getpagesize() / 2**20, 1),
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": max(tasks, threading.active_count()),
    }


def one_round(folder: Path, seed: int) -> None:
    from conjoint.training import TrainConfig, fit, load_run, predict_proba, start_run
    from conjoint.training.runs import ModelSpec
    from small_training import CLASSES, FEATURES, NODES, small_data, small_split

    spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 4, "heads": 2})
    config = TrainConfig(epochs=EPOCHS, patience=0, seed=seed)
    data, split = small_data(), small_split()
    run = start_run(folder / str(seed), config, model=spec, data=data, split=split)
    run.every_epochs = 25
    fit(run.build_model(), data, split, config, run=run)
    model, _ = load_run(run.path)
    predict_proba(model, data, config)


def measure(steps: int) -> dict[str, Any]:
    """The first fifth of the rounds warms up: caches and the allocator's arenas fill."""
    rounds = max(5, steps // EPOCHS)
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    seen = []
    with tempfile.TemporaryDirectory(dir=base) as folder:
        for number in range(rounds):
            one_round(Path(folder), number)
            seen.append(look())
    warm = seen[rounds // 5 :]
    return {
        "steps": rounds * EPOCHS,
        "first": warm[0],
        "last": warm[-1],
        "most": max(s["rss_mib"] for s in warm),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="look for leaks; prints one JSON line")
    parser.add_argument("--steps", type=int, default=10_000)
    print(json.dumps(measure(parser.parse_args().steps)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
