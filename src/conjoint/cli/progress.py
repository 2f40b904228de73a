"""A bar on stderr while training runs; where stderr is no terminal, a line now and then."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .terminal import say

SECONDS_BETWEEN_LINES = 10.0
OnEpoch = Callable[[dict[str, Any]], None]


@contextlib.contextmanager
def progress(title: str, epochs: int, quiet: bool) -> Iterator[OnEpoch | None]:
    """A function to call with each epoch's row. `title` must be safe to print."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(title, epochs) as show:
            yield show
    else:
        yield _lines(title, epochs)


@contextlib.contextmanager
def _bar(title: str, epochs: int) -> Iterator[OnEpoch]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(escape(title)),
        BarColumn(bar_width=14),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),  # at most: training may stop before the last epoch
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=epochs, numbers="")

        def show(row: dict[str, Any]) -> None:
            bar.update(task, completed=row["epoch"], numbers=_numbers(row))

        yield show


def _lines(title: str, epochs: int) -> OnEpoch:
    last = time.monotonic()

    def show(row: dict[str, Any]) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{title}: epoch {row['epoch']}/{epochs}, {_numbers(row)}")

    return show


def _numbers(row: dict[str, Any]) -> str:
    """The prediction's loss: the structural penalty is large and would hide it."""
    shown = f"loss {row['prediction_loss']:.2f}"
    return f"{shown}, val. {100 * row['val_accuracy']:.1f}%" if "val_accuracy" in row else shown
