"""Train in child processes that are killed without warning, until the run is done. Prints one JSON line.

Run by test_resume.py. One process imports torch and forks the children: real processes, real SIGKILL, without
paying for twenty imports.
"""

import hashlib
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from conjoint.training import TrainConfig, fit, resume_run, start_run
from small_training import SPEC, build, small_data, small_split

CONFIG = TrainConfig(epochs=14, patience=0, lr=0.05, schedule="cosine", warmup=5, clip=1.0, evaluate_every=2)


def train(path: Path) -> None:
    if path.exists():
        run = resume_run(path)
    else:
        run = start_run(path, CONFIG, model=SPEC, data=small_data(), split=small_split())
    run.every_epochs = 4
    fit(run.build_model(build), small_data(), small_split(), run.config, run=run)


def in_child(work: Callable[[], None], kill_after: float | None = None) -> bool:
    """Whether `work` came to its end. A child that fails is an error; one that is killed is not."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)  # a child that has ended is still there to be waited for
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return True
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    raise SystemExit(f"a child failed with status {status}")


def dies_at(call: int, names: tuple[str, ...]) -> None:
    """Kill this process at its n-th call of these functions of `os`: before it, or right after it."""
    left = call

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and call % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            done = function(*args, **options)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return wrapped

    for name in names:
        setattr(os, name, deadly(getattr(os, name)))


def train_until(call: int, path: Path) -> None:
    dies_at(call, ("replace", "fsync", "rename"))
    train(path)


def outcome(path: Path) -> dict[str, Any]:
    files = ("weights.safetensors", "metrics.jsonl", "model.json", "config.toml")
    left = sorted(
        p.name for p in path.iterdir() if p.name not in (*files, "node_ids.npy", "labels.npy", ".lock")
    )
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in files} | {"left": left}


def main(folder: Path) -> None:
    train(folder / "whole")  # in this process: what torch loads on first use, the children then have
    outcomes, kills = [outcome(folder / "whole")], 0
    rng = random.Random(7)
    started = time.perf_counter()
    in_child(partial(train, folder / "timed"))
    whole = time.perf_counter() - started  # on a fast machine a fixed time would kill hardly any
    for trial in range(3):
        path, mean = folder / f"timed-{trial}", whole / 4
        while not in_child(partial(train, path), kill_after=rng.uniform(0.0, mean)):
            kills, mean = kills + 1, mean * 1.2
        outcomes.append(outcome(path))
    for call in itertools.count(1):
        path = folder / f"placed-{call}"
        if in_child(partial(train_until, call, path)):
            break  # the whole run has fewer such calls: every one of them was the last of some process
        kills += 1
        in_child(partial(train, path))
        outcomes.append(outcome(path))
    print(json.dumps({"kills": kills, "outcomes": outcomes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
