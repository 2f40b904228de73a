"""Members that are trained side by side in processes: the same bits, and nothing left behind."""

import multiprocessing
import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from conjoint.errors import ConjointError, InputError
from conjoint.graph.splits import every_label
from conjoint.selection import learner
from conjoint.selection.members import MEMBERS, Budget
from conjoint.selection.search import Job, Search
from conjoint.selection.side_by_side import Workers, possible
from small_ensemble import FEW, QUICK, learnt, made_graph

pytestmark = pytest.mark.skipif(not possible(), reason="processes are copied on Linux only")


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Any:
    yield
    assert not multiprocessing.active_children()


def result(workers: Workers, job: Any) -> Any:
    workers.start(job)
    while job not in workers.done:
        workers.turn()
    return workers.done.pop(job)


def test_the_same_bits_and_the_same_epochs_told() -> None:
    graph, _ = made_graph()
    found: list[Any] = []
    for processes in (1, 3):
        told: list[tuple[str, int]] = []

        @contextmanager
        def watch(title: str, epochs: int, told: list[tuple[str, int]] = told) -> Any:
            yield lambda row: told.append((title, row["epoch"]))

        split = every_label(graph.y.numpy(), 0)
        _, shares, made = learnt(graph, split, watch=watch, processes=processes)
        tried = [(one.member, one.fold, one.merit, one.epochs, one.curve) for one in made.trials]
        found.append((shares, tried, made.members, made.estimate, told))
    (shares, *rest), (others, *others_rest) = found
    assert torch.equal(shares, others) and rest == others_rest and len(rest[-1]) > 100


def test_so_many_trainings_and_no_more() -> None:
    graph, _ = made_graph()
    for trials in (1, 2, 4):
        options: dict[str, Any] = {"members": QUICK, "budget": Budget(trials=trials)}
        made = [learnt(graph, every_label(graph.y.numpy(), 0), processes=n, **options)[2] for n in (1, 2)]
        assert len(made[0].trials) == len(made[1].trials) <= trials
        assert made[0].left_out == made[1].left_out


def test_ctrl_c_keeps_what_is_done_and_the_search_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    graph, _ = made_graph()
    split = every_label(graph.y.numpy(), 0)
    expected = learnt(graph, split)[1]

    def press(line: str) -> None:
        if "fold 3" in line:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = learnt(graph, split, folder=tmp_path, processes=2, tell=press)[2]
    assert stopped.interrupted and 3 <= len(stopped.trials) < 20
    again = learnt(graph, split, folder=tmp_path, processes=2)
    assert torch.equal(again[1], expected) and not again[2].interrupted


def test_what_a_process_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # of ours; a helper has one, and says so to libraries
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # a helper must end when it is told to

    def work(job: str, on_epoch: Any) -> str:
        for epoch in (1, 2):
            on_epoch({"epoch": epoch})
        if job == "wrong":
            raise InputError("hidden=0: give 1 or more")
        if job == "broken":
            raise KeyError(threading.Lock())  # which cannot be sent
        ends = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        return f"{job} {torch.get_num_threads()} {os.environ['OMP_NUM_THREADS']} {ends}"

    workers = Workers(1, work)
    try:
        assert result(workers, "fine") == (True, "fine 1 1 True")
        assert workers.rows["fine"] == [{"epoch": 1}, {"epoch": 2}]
        good, error = result(workers, "wrong")
        assert not good and isinstance(error, InputError) and str(error) == "hidden=0: give 1 or more"
        good, error = result(workers, "broken")
        assert not good and "KeyError" in str(error)
        assert result(workers, "after") == (True, "after 1 1 True")
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in workers.processes:
            process.kill()
        workers.close()


def test_a_process_that_is_ended_from_outside_is_one_line() -> None:
    workers = Workers(1, lambda job, on_epoch: os.kill(os.getpid(), signal.SIGKILL))
    try:
        workers.start("a training")
        with pytest.raises(ConjointError, match="lack of memory; OMP_NUM_THREADS=1"):
            for _ in range(50):
                workers.turn()
    finally:
        workers.close()


def test_no_process_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "pids"

    def parent() -> None:
        workers = Workers(2, lambda job, on_epoch: signal.pause())
        told.write_text(" ".join(str(process.pid) for process in workers.processes))
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=parent)
    process.start()
    process.join()
    for pid in map(int, told.read_text().split()):
        for _ in range(100):
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except FileNotFoundError:
                break
            if state == "Z":
                break
            signal.sigtimedwait([], 0.1)
        else:
            pytest.fail(f"process {pid} is still there")


def test_a_training_that_is_no_longer_wanted_is_not_counted() -> None:
    """It was begun beside one whose outcome makes it hopeless."""
    graph, _ = made_graph()
    search = Search(
        graph, every_label(graph.y.numpy(), 0), 0, "accuracy", Budget(trials=9), None, FEW, None, None, 2
    )
    search.workers = Workers(2, search.work)
    try:
        search.upcoming = [(member, 0) for member in FEW]
        search.outcome(Job("logistic", 0, 0))
        assert search.workers.knows(Job("residual attention", 0, 0)) and not search.trials
    finally:
        search.workers.close()


def test_how_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = made_graph()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert learner.at_a_time(MEMBERS, graph) == 4
    need = max(learner.memory_of(member, graph) for member in MEMBERS)
    monkeypatch.setattr(learner, "available_memory", lambda: int(2.5 * need / learner.USABLE))
    assert learner.at_a_time(MEMBERS, graph) == 2
    monkeypatch.setattr(learner, "LARGE", graph.num_nodes)
    assert learner.at_a_time(MEMBERS, graph) == 1
