"""Do the runs that are not done yet, in processes of their own, and write each one down as it ends.

Nothing heavy is imported here, so that a worker starts at once: what it needs comes with its first run.
"""

import multiprocessing
import multiprocessing.connection
import os
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from ..storage import locked
from .rows import Row, RunSpec, append_row, cut_torn_lines, read_rows

Execute = Callable[[RunSpec, str | None], Row]
# Read by the numeric libraries when they start. With few cores, one thread in each of several processes does
# more than several threads in one.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(
    specs: Iterable[RunSpec],
    folder: Path,
    execute: Execute,
    *,
    root: str | None = None,
    jobs: int = 1,
    isolated: bool = False,
    on_row: Callable[[RunSpec, Row], None] | None = None,
) -> list[Row]:
    """Complete `specs` in `folder` and return all of their rows, old and new, in the order of `specs`.

    A killed call loses the runs in progress (as many as `jobs`) and nothing else; calling again goes on.

    Args:
        execute: what a worker does with a spec, `conjoint.experiments.execute.execute`; must be importable.
        root: folder with the benchmarks' raw files.
        jobs: processes, each with one thread: on few cores that is faster than one run with many.
        isolated: a fresh process for every run.
        on_row: called after each new row is on disk.
    """
    wanted = {spec.key: spec for spec in specs}
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        cut_torn_lines(folder)
        done = {row["key"]: row for row in read_rows(folder) if row["key"] in wanted}
        todo = [spec for key, spec in wanted.items() if key not in done]
        if todo:
            with _workers(min(jobs, len(todo)), isolated) as pool:
                for spec, row in _as_they_end(pool, todo, root, execute, ahead=jobs):
                    append_row(folder, row)
                    done[spec.key] = row
                    if on_row is not None:
                        on_row(spec, row)
    return [done[key] for key in wanted]


def missing(specs: Sequence[RunSpec], rows: Iterable[Row]) -> list[RunSpec]:
    """Those of `specs` that have no row yet."""
    done = {row["key"] for row in rows}
    return [spec for spec in specs if spec.key not in done]


def expected_seconds(spec: RunSpec, rows: Iterable[Row]) -> float | None:
    """How long `spec` may take, by the rows most like it: same model and graph, or else same graph."""
    same_graph = [row for row in rows if row["dataset"] == spec.dataset]
    alike = [row for row in same_graph if row["model"] == spec.model] or same_graph
    return statistics.median(row["seconds"] for row in alike) if alike else None


def _as_they_end(
    pool: ProcessPoolExecutor, todo: Sequence[RunSpec], root: str | None, execute: Execute, ahead: int
) -> Iterator[tuple[RunSpec, Row]]:
    """Hand out no more than the workers can hold, so that an interruption has little to take back."""
    waiting = iter(todo)
    running: dict[Future[Row], RunSpec] = {
        pool.submit(execute, spec, root): spec for spec in islice(waiting, ahead)
    }
    while running:
        for ended in wait(running, return_when=FIRST_COMPLETED).done:
            spec = running.pop(ended)
            for follower in islice(waiting, 1):
                running[pool.submit(execute, follower, root)] = follower
            yield spec, ended.result()


@contextmanager
def _workers(jobs: int, isolated: bool) -> Iterator[ProcessPoolExecutor]:
    """Processes with one thread each; our own libraries, started already, keep theirs."""
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_with_the_parent,
        max_tasks_per_child=1 if isolated else None,
    )
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()  # an interrupted run is lost anyway; do not wait for it
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            del os.environ[name]
            os.environ.update({} if value is None else {name: value})


def _leave_with_the_parent() -> None:
    """No worker outlives a parent that was killed."""

    def leave(sentinel: int) -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=leave, args=(parent.sentinel,), daemon=True).start()
