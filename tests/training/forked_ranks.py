"""Real processes that train together, and that meet trouble. Prints one JSON document; run by test_ranks.py.

One process imports torch and forks the ranks, so that the import is paid for once. Every scenario gives, rank
by rank, what the process said in the end.
"""

import hashlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conjoint.errors import ConjointError, InputError, StorageError
from conjoint.graph.graph import Graph, as_graph
from conjoint.graph.splits import every_label
from conjoint.selection.all_labels import learn_from_all
from conjoint.training import BatchConfig, ModelSpec, Ranks, connected, resume_run, start_run
from conjoint.training.runs import take_up
from scale_runs import CLASSES, CONFIG, FEATURES, NODES, graph_and_split, train

Work = Callable[[Ranks], Any]
CLIPPED = replace(CONFIG, clip=0.5, evaluate_every=CONFIG.epochs)  # so the last weights are kept
SLOW = replace(CONFIG, lr=0.003)  # so that the best epoch is not the first


def in_ranks(world: int, work: Work, timeout: float = 30.0) -> list[Any]:
    """What `work` returned, or the line it ended with; "killed" for a process that gave no answer."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        children = [
            _fork(rank, world, port, work, timeout, Path(folder) / str(rank)) for rank in range(world)
        ]
        for child in children:
            os.waitpid(child, 0)
        answers = [Path(folder) / str(rank) for rank in range(world)]
        return [json.loads(path.read_text()) if path.exists() else "killed" for path in answers]


def _fork(rank: int, world: int, port: int, work: Work, timeout: float, answer: Path) -> int:
    child = os.fork()
    if child:
        return child
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    status = 1
    try:
        with connected(timeout=timeout) as ranks:
            try:
                said = work(ranks)
            except ConjointError as error:
                said = f"{type(error).__name__}: {error}"
            answer.write_text(json.dumps(said))
            status = 0
            os._exit(0)  # as a process that has failed does: without waiting for the others
    finally:
        os._exit(status)


def same_model(kind: str) -> dict[str, float]:
    """How far the weights of several ranks are from those of one, at most."""
    with tempfile.TemporaryDirectory() as folder:

        def keep(ranks: Ranks) -> float:
            path = Path(folder) / f"{ranks.world}.json"
            kept = train(ranks, kind, norm="batch")
            if ranks.is_first:
                path.write_text(json.dumps({name: value.tolist() for name, value in kept.items()}))
            return 0.0

        apart = {}
        for world in (1, 2, 4):
            in_ranks(world, keep)
            now = json.loads((Path(folder) / f"{world}.json").read_text())
            one = json.loads((Path(folder) / "1.json").read_text())
            differences = [(torch.tensor(now[k]) - torch.tensor(one[k])).abs().max() for k in one]
            apart[str(world)] = float(torch.stack(differences).max())
        return apart


def wrong_number(ranks: Ranks) -> None:
    train(ranks)


def unreadable(ranks: Ranks) -> None:
    """The second rank loses its disk in the second epoch."""
    graph = as_graph(graph_and_split()[0])
    reads = 0

    class Broken(Graph):
        def features(self, nodes: Any) -> torch.Tensor:
            nonlocal reads
            reads += 1
            if ranks.rank == 1 and reads > 4:
                raise InputError("x.npy: truncated")
            return graph.features(nodes)

    parts = {f.name: getattr(graph, f.name) for f in fields(graph) if f.init}
    train(ranks, graph=Broken(**parts))


def full_disk(ranks: Ranks) -> None:
    """The first rank, which writes the run folder, has no room for a checkpoint."""
    data, split = graph_and_split()
    run = None
    with tempfile.TemporaryDirectory() as folder:
        if ranks.is_first:
            spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 4, "heads": 2})
            run = start_run(Path(folder) / "run", CONFIG, model=spec, data=data, split=split)
            run.every_epochs = 1

            def full(*_: object) -> None:
                raise StorageError("checkpoint.safetensors: no space left")

            run.save = full  # type: ignore[method-assign, assignment]
        train(ranks, run=run)


def killed(ranks: Ranks) -> None:
    def die(row: dict[str, Any]) -> None:
        if row["epoch"] == 2 and ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    train(ranks, progress=die)


def silent(ranks: Ranks) -> None:
    def sleep(row: dict[str, Any]) -> None:
        if row["epoch"] == 2 and ranks.rank == 1:
            time.sleep(8)

    train(ranks, progress=sleep)


def resumed() -> float:
    """Two ranks stop after a checkpoint, one goes on: how far that is from never stopping."""
    data, split = graph_and_split()
    spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 4, "heads": 2})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"

        def stop(row: dict[str, Any]) -> None:
            if row["epoch"] == 3:
                raise InputError("stopped")

        def begin(ranks: Ranks) -> None:
            run = start_run(path, CLIPPED, model=spec, data=data, split=split) if ranks.is_first else None
            if run is not None:
                run.every_epochs = 1
            train(ranks, run=run, progress=stop, config=CLIPPED)

        def go_on(ranks: Ranks) -> float:
            one, whole = train(ranks, run=resume_run(path), config=CLIPPED), train(ranks, config=CLIPPED)
            return max(float((one[name] - whole[name]).abs().max()) for name in whole)

        in_ranks(2, begin)
        return in_ranks(1, go_on)[0]


def all_labels() -> dict[str, Any]:
    """What the two trainings of all labels end with, for several numbers of ranks; and of two ranks of which
    one is killed in the first training, then one in the second."""
    data, _ = graph_and_split()
    split = every_label(data.y.numpy(), 0)
    spec = ModelSpec("cat-i-mf", FEATURES, CLASSES, NODES, {"hidden": 4, "heads": 2})
    batches = BatchConfig(kind="neighbours", size=15, fanout=(4, 3), per_step=4, penalty_neighbours=4)

    def learn(path: Path, dies: str, ranks: Ranks) -> dict[str, str]:
        def watch(title: str, epochs: int) -> Any:
            def die(row: dict[str, Any]) -> None:
                if ranks.rank == 1 and row["epoch"] == 2 and title.endswith(dies):
                    os.kill(os.getpid(), signal.SIGKILL)

            return nullcontext(die if dies else None)

        run = None
        if ranks.is_first:
            run = take_up(path, SLOW, model=spec, data=data, split=split)
            run.every_epochs = 1
        parts: dict[str, Any] = {"spec": spec, "batches": batches, "ranks": ranks, "run": run, "watch": watch}
        fitted, _, judged = learn_from_all(lambda: spec.build(0), data, split, SLOW, **parts)
        if not ranks.is_first:  # the folder is not theirs
            return {}
        assert judged is not None and fitted.best_epoch >= 2  # so that the second training comes to its death
        names = ("weights.safetensors", "judged.safetensors", "metrics.jsonl")
        return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names}

    with tempfile.TemporaryDirectory() as folder:
        ends = {world: in_ranks(world, partial(learn, Path(folder) / str(world), "")) for world in (1, 2, 4)}
        died = [in_ranks(2, partial(learn, Path(folder) / "died", one)) for one in ("training", "labels", "")]
    return {"ends": [said[0] for said in ends.values()], "died": died}


SCENARIOS: dict[str, Callable[[], Any]] = {
    "same neighbours": lambda: same_model("neighbours"),
    "same clusters": lambda: same_model("clusters"),
    "resumed": resumed,
    "all labels": all_labels,
    "wrong number": lambda: in_ranks(3, wrong_number),
    "unreadable": lambda: in_ranks(2, unreadable),
    "full disk": lambda: in_ranks(2, full_disk),
    "killed": lambda: in_ranks(2, killed),
    "silent": lambda: in_ranks(2, silent, timeout=3.0),
}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(SCENARIOS)
    print(json.dumps({name: SCENARIOS[name]() for name in wanted}))
