"""conjoint reproduce: run or complete one of the paper's tables."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from ..errors import InputError, Interrupted
from ..experiments.execute import execute
from ..experiments.grid import experiment, experiment_names
from ..experiments.rows import RunSpec, read_rows
from ..experiments.runner import expected_seconds, missing, run
from ..experiments.tables import tables_of
from .output import answer, bar, say, share, table

OnRow = Callable[[RunSpec, dict[str, Any]], None]
A_GUESS = 20.0  # seconds of a run, before anything is known


def work(options: argparse.Namespace) -> None:
    folder = Path(options.results)
    if options.table is None:
        rows = _overview(folder)
        answer(options, {"experiments": rows}, table(rows, right=("runs", "done")))
        return
    if options.jobs < 1:
        raise InputError(f"--jobs {options.jobs}: give 1 or more")
    chosen = experiment(options.table, options.quick)
    specs = [spec for spec in chosen.specs if options.only in (None, spec.dataset)]
    if not specs:
        known = ", ".join(dict.fromkeys(spec.dataset for spec in chosen.specs))
        raise InputError(f"--only {options.only}: {options.table} has no runs there; it has {known}")
    settings = {"root": options.data, "jobs": options.jobs, "isolated": chosen.isolated}
    try:
        with _progress(specs, folder, options.jobs, options.quiet) as on_row:
            run(specs, folder, execute, **settings, on_row=on_row)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; what is done is in {folder}, the same command goes on") from None
    document, lines = [], []
    for made in tables_of(options.table, read_rows(folder)):
        if made.runs:
            cells = [[entry.text for entry in row] for row in made.rows]
            document.append({"title": made.title, "headers": made.headers, "rows": cells})
            shown = table([dict(zip(made.headers, row, strict=True)) for row in cells])
            lines.append(f"\n{made.title}\n{shown}")
    answer(options, {"experiment": options.table, "tables": document}, *lines)


def _overview(folder: Path) -> list[dict[str, Any]]:
    """Every experiment, and how many of its runs are done."""
    rows, shown = read_rows(folder), []
    for name in experiment_names():
        chosen = experiment(name)
        runs, left = len(chosen.specs), len(missing(chosen.specs, rows))
        shown.append({"table": name, "runs": runs, "done": runs - left, "what": chosen.title})
    return shown


@contextlib.contextmanager
def _progress(specs: Sequence[RunSpec], folder: Path, jobs: int, quiet: bool) -> Iterator[OnRow | None]:
    """A function to call after each run: it moves a bar on stderr, or prints a line."""
    left = TimeLeft(specs, read_rows(folder), jobs)
    if quiet or not left.todo:
        yield None
        return
    say(f"{len(left.todo)} of {len(specs)} runs to do, about {left}")
    if not sys.stderr.isatty():
        yield lambda spec, row: say(left.after(spec, row))
        return
    with bar(BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}")) as shown:
        task = shown.add_task("", total=len(left.todo))
        yield lambda spec, row: shown.update(task, advance=1, description=escape(left.after(spec, row)))


class TimeLeft:
    """Adds up what the runs to come are expected to take, and learns from each one that ends."""

    def __init__(self, specs: Sequence[RunSpec], rows: list[dict[str, Any]], jobs: int) -> None:
        self.rows, self.jobs = rows, jobs
        self.todo = {spec.key: spec for spec in missing(specs, rows)}

    def after(self, spec: RunSpec, row: dict[str, Any]) -> str:
        """What this run gave, and the time left."""
        self.rows.append(row)
        self.todo.pop(spec.key, None)
        result = row["failed"] if "failed" in row else f"test {share(row['test_accuracy'])}"
        return f"{spec.label}: {result}, about {self} left"

    def seconds(self) -> float:
        alike = {(spec.model, spec.dataset): spec for spec in self.todo.values()}
        each = {kind: expected_seconds(spec, self.rows) or A_GUESS for kind, spec in alike.items()}
        return sum(each[spec.model, spec.dataset] for spec in self.todo.values()) / self.jobs

    def __str__(self) -> str:
        seconds = self.seconds()
        if seconds < 90:
            return f"{seconds:.0f} s"
        return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
