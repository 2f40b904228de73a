"""Kill the program without warning, again and again, until its work is done. Prints one JSON line.

    python -m faults.kills --kills 200 --seed 1      (with src and tests on PYTHONPATH)

One process imports torch and forks the children, each of which runs `conjoint` as its command line does: real
processes, real SIGKILL, without paying for hundreds of imports. After every kill the files must be such that
whoever opens them finds nothing half-written; in the end they must be, bit for bit, what an undisturbed
process leaves. The same seed kills after the same delays.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fake_portrait import portrait
from fake_runs import at_once, made_up, specs

# The workers of `reproduce` import this module, so what is heavy is imported where it is used.
SYSTEM_CALLS = ("replace", "fsync", "rename", "mkdir", "unlink", "write")


@dataclass(frozen=True)
class Target:
    """Work on a folder, made ready before; what must hold after any kill; what it leaves in the end."""

    prepare: Callable[[Path], None]
    work: Callable[[Path], None]
    check: Callable[[Path], None]
    outcome: Callable[[Path], dict[str, str]]


def command(*words: object) -> None:
    """The command line, in this process, saying nothing. A status other than 0 is an error."""
    from conjoint.cli import main as conjoint_main

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        status = conjoint_main([*map(str, words)])
    if status:
        raise SystemExit(f"conjoint {words[0]} ended with status {status}")


def train(folder: Path) -> None:
    """Without pictures and report, whose thread pools do not survive a fork."""
    from own_files import train_arguments

    if (folder / "run").exists():
        command("train", "--resume", folder / "run", "--no-plots", "--no-report", "--quiet")
    else:
        options = ("--seeds", 1, "--epochs", 30, "--patience", 0, "--no-plots", "--no-report", "--quiet")
        command(*train_arguments(folder, *options, "--out", folder / "run"))


def check_run(folder: Path) -> None:
    """A run folder that is there can be opened, and what says that it is finished loads."""
    from conjoint.training import load_run, resume_run

    if (folder / "run").exists() and resume_run(folder / "run").sidecar.finished:
        load_run(folder / "run")


def run_outcome(folder: Path) -> dict[str, str]:
    run = folder / "run"
    names = ("weights.safetensors", "metrics.jsonl", "model.json", "predictions.csv", "node_ids.npy")
    found = {name: _sha256(run / name) for name in names}
    result = json.loads((run / "result.json").read_text())
    left = sorted(
        p.name for p in run.iterdir() if p.name not in (*names, "config.toml", "result.json", ".lock")
    )
    return found | {"result": json.dumps({**result, "seconds": 0}), "left": ",".join(left)}


GRID = 6


def reproduce(folder: Path) -> None:
    from conjoint.experiments.runner import run

    run(specs(GRID), folder / "results", execute=at_once)


def check_rows(folder: Path) -> None:
    """Every row that was ever there is still there, as it was."""
    from conjoint.experiments.rows import read_rows

    seen = folder / "seen"
    before = seen.read_text() if seen.exists() else ""
    whole = (
        (folder / "results" / "cora.jsonl").read_text()
        if (folder / "results" / "cora.jsonl").exists()
        else ""
    )
    now = whole[: whole.rfind("\n") + 1]
    assert now.startswith(before), "a finished row was changed"
    assert len(read_rows(folder / "results")) == now.count("\n")
    seen.write_text(now)


def rows_outcome(folder: Path) -> dict[str, str]:
    from conjoint.experiments.rows import read_rows

    return {"rows": json.dumps(sorted(read_rows(folder / "results"), key=lambda row: row["seed"]))}


def prepare_report(folder: Path) -> None:
    from conjoint.experiments.rows import append_row

    for spec in specs(3):
        append_row(folder / "results", made_up(spec))
    (folder / "results" / "report").mkdir()
    (folder / "results" / "report" / "cora.json").write_text(json.dumps(portrait()))


def report(folder: Path) -> None:
    command("report", "--results", folder / "results", "--out", folder / "r.html")
    command("report", "--results", folder / "results", "--markdown", folder / "pages")


def check_report(folder: Path) -> None:
    """A page that is there is a whole page."""
    if (folder / "r.html").exists():
        assert (folder / "r.html").read_text().rstrip().endswith("</html>")


def report_outcome(folder: Path) -> dict[str, str]:
    return {name: _sha256(folder / name) for name in ("r.html", "pages/index.md", "pages/table1.md")}


def write_files(folder: Path) -> None:
    from own_files import write_own_files

    write_own_files(folder)


def nothing(folder: Path) -> None:
    pass


def ingest(folder: Path) -> None:
    from conjoint.data import ingest
    from conjoint.graph.folder import is_graph_folder

    if not is_graph_folder(folder / "graph"):
        nodes, edges = folder / "nodes.csv", folder / "edges.csv"
        ingest(edges, nodes, folder / "graph", label="topic")


def check_graph_folder(folder: Path) -> None:
    """What looks complete is complete."""
    from conjoint.graph.folder import is_graph_folder, open_folder
    from small_training import small_data

    if is_graph_folder(folder / "graph"):
        assert open_folder(folder / "graph").num_nodes == small_data().num_nodes


def graph_outcome(folder: Path) -> dict[str, str]:
    return {
        path.name: _sha256(path) for path in sorted((folder / "graph").iterdir()) if path.suffix != ".lock"
    }


TARGETS = {
    "train": Target(write_files, train, check_run, run_outcome),
    "reproduce": Target(nothing, reproduce, check_rows, rows_outcome),
    "report": Target(prepare_report, report, check_report, report_outcome),
    "ingest": Target(write_files, ingest, check_graph_folder, graph_outcome),
}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def work_until(call: int, target: Target, folder: Path) -> None:
    from training.kill_trials import dies_at

    dies_at(call, SYSTEM_CALLS)
    target.work(folder)


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    """In memory: hundreds of fsyncs are hard on a disk."""
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(dir=base, prefix="kills-") as scratch:
        (Path(scratch) / name).mkdir()
        yield Path(scratch) / name


def kill_again_and_again(name: str, kills: int, chance: random.Random) -> dict[str, Any]:
    """How often it was killed, over how many pieces of work, and the first thing that went wrong, if any."""
    from training.kill_trials import in_child

    target = TARGETS[name]
    with _folder("work") as folder:
        target.prepare(folder)
        began = time.perf_counter()
        in_child(partial(target.work, folder))
        span = time.perf_counter() - began
        truth = target.outcome(folder)
    done = works = 0
    call = 0
    while done < kills:
        with _folder("work") as folder:
            target.prepare(folder)
            reach = span
            while done < kills + 20:
                if works % 2:  # at a chosen call of the system, each one further than the last
                    call += chance.randint(1, 3)
                    finished = in_child(partial(work_until, call, target, folder))
                    call = 0 if finished else call
                else:
                    finished = in_child(partial(target.work, folder), kill_after=chance.uniform(0, reach))
                    reach *= 1.15  # so that every piece of work ends at last
                target.check(folder)
                if finished:
                    break
                done += 1
            in_child(partial(target.work, folder))
            target.check(folder)
            found = target.outcome(folder)
            works += 1
        if found != truth:
            return {"kills": done, "works": works, "lost": f"{name}: {found} is not {truth}"}
    return {"kills": done, "works": works, "lost": None}


def warm_up() -> None:
    """What torch loads on first use, the children then have. Not polars, which does not survive a fork."""
    import matplotlib.figure  # noqa: F401

    import conjoint.experiments.runner  # noqa: F401
    from conjoint.training import TrainConfig, fit
    from small_training import small_data, small_model, small_split

    fit(small_model(), small_data(), small_split(), TrainConfig(epochs=1))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="kill the program until its work is done; prints one JSON line"
    )
    parser.add_argument("--kills", type=int, default=200, help="in all (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=TARGETS)
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    warm_up()
    names = [options.only] if options.only else list(TARGETS)
    share = -(-options.kills // len(names))
    results = {
        name: kill_again_and_again(name, share, random.Random(f"{options.seed}/{name}")) for name in names
    }
    lost = [result["lost"] for result in results.values() if result["lost"]]
    total = sum(result["kills"] for result in results.values())
    print(json.dumps({"seed": options.seed, "kills": total, "lost": lost, "targets": results}))
    return 1 if lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
