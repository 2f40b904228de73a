"""Do the runs that are not done yet, in processes of their own, and write each one down as it ends."""

import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from ..training.runs.lock import locked
from .execute import execute
from .rows import Row, append_row, cut_torn_lines, read_rows
from .spec import RunSpec
from .worker import environment_of_workers, start

Execute = Callable[[RunSpec, str | None], Row]
OnRow = Callable[[RunSpec, Row], None]


def run(
    specs: Iterable[RunSpec],
    folder: Path,
    *,
    root: str | None = None,
    jobs: int = 1,
    isolated: bool = False,
    on_row: OnRow | None = None,
    execute: Execute = execute,
) -> list[Row]:
    """Complete `specs` in `folder` and return all of their rows, old and new, in the order of `specs`.

    A killed call loses the runs in progress (as many as `jobs`) and nothing else; calling again goes on.

    Args:
        root: folder with the benchmarks' raw files.
        jobs: processes, each with one thread: on few cores that is faster than one run with many.
        isolated: a fresh process for every run.
        on_row: called after each new row is on disk.
        execute: what a worker does with a spec; must be importable.
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
    same_model = [row for row in same_graph if row["model"] == spec.model]
    alike = same_model or same_graph
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
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        max_tasks_per_child=1 if isolated else None,
    )
    try:
        with environment_of_workers():
            yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()  # an interrupted run is lost anyway; do not wait for it
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
