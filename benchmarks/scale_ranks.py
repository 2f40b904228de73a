"""Several ranks under torchrun: throughput, a worker that is killed, two network namespaces.

python -m benchmarks.scale_ranks throughput kill namespaces --scratch /opt/scale
python -m benchmarks.scale_ranks throughput --scratch /opt/scale --batches-per-step 4

`namespaces` needs root: two namespaces with their own addresses, joined by a virtual cable, one rank in each.
"""

import argparse
import datetime
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import environment
from .scale_graph import write_tables

NODES, EDGES, FEATURES = 100_000, 1_000_000, 128
BATCH = ("--batch", "neighbours", "--batch-size", "1024", "--fanout", "10,5", "--batches-per-step")
QUIET = ("--quiet", "--json")
SHORT, LONG = 2, 22  # epochs of a run
TURNS = 5


def graph_in(scratch: Path) -> Path:
    home = scratch / "ranks"
    if not (home / "graph").exists():
        edges, nodes = write_tables(home, NODES, EDGES, FEATURES)
        where = ("--edges", str(edges), "--nodes", str(nodes), "--out", str(home / "graph"))
        command = [sys.executable, "-m", "conjoint", "ingest", *where, "--label", "label"]
        subprocess.run([*command, "--split-column", "part", "--quiet"], check=True, env=_environment())
    return home / "graph"


def train_command(
    ranks: int, graph: Path, out: Path, epochs: int, per_step: int, *launcher: str
) -> list[str]:
    shutil.rmtree(out, ignore_errors=True)
    start = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", *launcher]
    train = [
        "-m",
        "conjoint",
        "train",
        str(graph),
        *BATCH,
        str(per_step),
        "--epochs",
        str(epochs),
        "--patience",
        "0",
    ]
    # One look at the validation nodes, at the end: what is measured is training.
    return [*start, *train, "--set", f"evaluate_every={epochs}", "--out", str(out), *QUIET]


def throughput(scratch: Path, per_step: int) -> dict[str, Any]:
    """Seconds of an epoch on one rank and on two, one thread each: the difference of two lengths of run.

    Ranks take turns, so that a slow moment of the machine hits both; the median turn of each counts.
    """
    graph, home = graph_in(scratch), scratch / "ranks"
    turns: dict[int, list[float]] = {1: [], 2: []}
    for _, ranks in itertools.product(range(TURNS), turns):
        took = {}
        for epochs in (SHORT, LONG):
            out = home / f"run-{ranks}-{epochs}"
            command = train_command(ranks, graph, out, epochs, per_step)
            subprocess.run(command, check=True, env=_environment(), stdout=subprocess.DEVNULL)
            took[epochs] = json.loads((out / "result.json").read_text())["seconds"]
        turns[ranks].append((took[LONG] - took[SHORT]) / (LONG - SHORT))
    seconds = {ranks: statistics.median(turns[ranks]) for ranks in turns}
    apart = {n: _weights_apart(home / f"run-1-{n}", home / f"run-2-{n}") for n in (SHORT, LONG)}
    every = {"epoch_seconds": seconds, "epoch_seconds_of_turns": turns}
    return every | {"speedup": seconds[1] / seconds[2], "weights_apart": apart}


def kill(scratch: Path, per_step: int) -> dict[str, Any]:
    """Four workers, one of them killed in the middle of an epoch; against a run that nobody disturbed."""
    graph, home = graph_in(scratch), scratch / "ranks"
    more = ("--save-every", "0", "--timeout", "90")
    calm = [*train_command(4, graph, home / "calm", 6, per_step), *more]
    subprocess.run(calm, check=True, env=_environment(), stdout=subprocess.DEVNULL)
    out = home / "killed"
    process = subprocess.Popen(
        [*train_command(4, graph, out, 6, per_step, "--max-restarts=2"), *more],
        env=_environment(),
        stdout=subprocess.DEVNULL,
    )
    while not _epochs_done(out) >= 2:
        time.sleep(0.05)
        if process.poll() is not None:
            raise SystemExit("the training ended before a worker could be killed")
    time.sleep(0.2)
    victim = _workers_of(process.pid)[2]
    os.kill(victim, signal.SIGKILL)
    done = _epochs_done(out)
    status = process.wait()
    rows = (out / "metrics.jsonl").read_text()
    return {
        "status": status,
        "killed_after_epoch": done,
        "epochs": rows.count("\n"),
        "same_history": rows == (home / "calm" / "metrics.jsonl").read_text(),
        "weights_apart": _weights_apart(home / "calm", out),
    }


def namespaces(scratch: Path, per_step: int) -> dict[str, Any]:
    """One rank in each of two network namespaces, which see each other through their own addresses alone."""
    graph, home = graph_in(scratch), scratch / "ranks"
    names, addresses = ("conjoint-a", "conjoint-b"), ("10.77.0.1", "10.77.0.2")
    _ip("netns add {0}; netns add {1}; link add veth-cj-a type veth peer name veth-cj-b", *names)
    try:
        for name, address, link in zip(names, addresses, ("veth-cj-a", "veth-cj-b"), strict=True):
            _ip("link set {1} netns {0}", name, link)
            _ip(
                "-n {0} addr add {2}/24 dev {1}; -n {0} link set {1} up; -n {0} link set lo up",
                name,
                link,
                address,
            )
        out = home / "spaces"
        processes = []
        for rank, (name, link) in enumerate(zip(names, ("veth-cj-a", "veth-cj-b"), strict=True)):
            launcher = (
                *(
                    "--nnodes=2",
                    f"--node-rank={rank}",
                    f"--master-addr={addresses[0]}",
                    "--master-port=29555",
                ),
                f"--local-addr={addresses[rank]}",
            )
            command = train_command(1, graph, out, 2, per_step, *launcher)
            where = {**_environment(), "GLOO_SOCKET_IFNAME": link, "TP_SOCKET_IFNAME": link}
            processes.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, *command], env=where, stdout=subprocess.DEVNULL
                )
            )
        statuses = [process.wait() for process in processes]
    finally:
        _ip("netns del {0}; netns del {1}", *names)
    alone = home / "one"
    subprocess.run(
        train_command(1, graph, alone, 2, per_step), check=True, env=_environment(), stdout=subprocess.DEVNULL
    )
    ranks = json.loads((out / "result.json").read_text())["ranks"]
    return {"statuses": statuses, "ranks": ranks, "weights_apart": _weights_apart(alone, out)}


def _ip(commands: str, *words: str) -> None:
    for command in commands.format(*words).split(";"):
        subprocess.run(["ip", *command.split()], check=True)


def _epochs_done(run: Path) -> int:
    rows = run / "metrics.jsonl"
    return rows.read_text().count("\n") if rows.exists() and (run / "checkpoint.safetensors").exists() else 0


def _workers_of(agent: int) -> list[int]:
    """The ranks are children of the launcher."""
    found = subprocess.run(["pgrep", "-P", str(agent)], capture_output=True, text=True, check=True)
    return [int(word) for word in found.stdout.split()]


def _weights_apart(one: Path, other: Path) -> float:
    from safetensors.torch import load_file

    left, right = (load_file(path / "weights.safetensors") for path in (one, other))
    return max(float((left[name] - right[name]).abs().max()) for name in left)


def _environment() -> dict[str, str]:
    return {**environment(), "OMP_NUM_THREADS": "1"}


PARTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "throughput": throughput,
    "kill": kill,
    "namespaces": namespaces,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--batches-per-step", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("results/scale/ranks.jsonl"))
    chosen = parser.parse_args()
    for part in chosen.parts:
        load = round(os.getloadavg()[0], 1)
        row = {"part": part, "nodes": NODES, "edges": EDGES, "features": FEATURES}
        row |= {"batch": [*BATCH, str(chosen.batches_per_step)], "load_before": load}
        row |= {"date": datetime.date.today().isoformat()}
        row |= PARTS[part](chosen.scratch, chosen.batches_per_step)
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        with open(chosen.out, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row))


if __name__ == "__main__":
    main()
