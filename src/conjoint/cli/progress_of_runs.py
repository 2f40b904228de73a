"""A bar over many runs on stderr, with the time left judged by earlier runs of the same kind."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..experiments.rows import read_rows
from ..experiments.runner import expected_seconds, missing
from ..experiments.spec import RunSpec
from .terminal import say

OnRow = Callable[[RunSpec, dict[str, Any]], None]
A_GUESS = 20.0  # seconds, before anything is known


@contextlib.contextmanager
def progress_of_runs(
    specs: Sequence[RunSpec], folder: Path, jobs: int, quiet: bool
) -> Iterator[OnRow | None]:
    """A function to call after each run."""
    left = TimeLeft(specs, read_rows(folder), jobs)
    if quiet or not left.todo:
        yield None
        return
    say(f"{len(left.todo)} of {len(specs)} runs to do, about {_span(left.seconds())}")
    if not sys.stderr.isatty():
        yield lambda spec, row: say(f"{_said(left, spec, row)}, about {_span(left.seconds())} left")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(left.todo))

        def show(spec: RunSpec, row: dict[str, Any]) -> None:
            text = _said(left, spec, row)
            bar.update(task, advance=1, description=escape(f"{text}, about {_span(left.seconds())} left"))

        yield show


class TimeLeft:
    """Adds up what the runs to come are expected to take, and learns from each one that ends."""

    def __init__(self, specs: Sequence[RunSpec], rows: list[dict[str, Any]], jobs: int) -> None:
        self.rows, self.jobs = rows, jobs
        self.todo = {spec.key: spec for spec in missing(specs, rows)}

    def learn(self, spec: RunSpec, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.todo.pop(spec.key, None)

    def seconds(self) -> float:
        kinds: dict[tuple[str, str], float] = {}
        total = 0.0
        for spec in self.todo.values():
            kind = (spec.model, spec.dataset)
            if kind not in kinds:
                kinds[kind] = expected_seconds(spec, self.rows) or A_GUESS
            total += kinds[kind]
        return total / self.jobs


def _said(left: TimeLeft, spec: RunSpec, row: dict[str, Any]) -> str:
    left.learn(spec, row)
    result = row["failed"] if "failed" in row else f"test {100 * row['test_accuracy']:.1f}%"
    return f"{spec.label}: {result}"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
