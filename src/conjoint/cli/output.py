"""What leaves a command: tables, JSON, remarks, bars and files. A user's text is shown, never obeyed."""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import Box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ..errors import InputError
from ..text import clean

TABLES = (".csv", ".tsv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")
RULE_UNDER_NAMES = Box("    \n    \n -  \n    \n    \n    \n    \n    \n", ascii=True)
UNLIMITED = 1_000_000  # columns: what is piped is never wrapped
SECONDS_BETWEEN_LINES = 10.0
OnEpoch = Callable[[dict[str, Any]], object]


def table(rows: Sequence[Mapping[str, object]], right: Collection[str] = ()) -> str:
    """Rows as aligned columns under their names; columns named in `right` hold numbers.

    On a terminal names are bold and long cells wrap; elsewhere it is plain text, one line per row.
    """
    if not rows:
        return ""
    made = Table(box=RULE_UNDER_NAMES, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in rows[0]:
        made.add_column(Text(clean(name)), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(clean(row[name])) for name in rows[0]))
    console = Console(width=None if sys.stdout.isatty() else UNLIMITED, highlight=False)
    with console.capture() as captured:
        console.print(made)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def answer(options: argparse.Namespace, document: Mapping[str, Any], *lines: str | None) -> None:
    """The result on stdout: the document with --json, else the lines that are there."""
    if options.json:
        print_json(document)
        return
    for line in lines:
        if line is not None:
            print(line)


def print_json(document: Mapping[str, Any]) -> None:
    """One document, in ASCII, so that it survives any terminal and any pipe."""
    print(json.dumps(document, indent=2, allow_nan=False, default=_plain))


def _plain(value: object) -> object:
    """NumPy's scalars and paths."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def say(text: str) -> None:
    """A remark for the reader, on stderr, so that stdout holds results alone."""
    print(text, file=sys.stderr)


def remark(options: argparse.Namespace, text: str) -> None:
    """What a person may want to know, but neither --quiet nor a program that reads --json."""
    if not (options.quiet or options.json):
        say(text)


def share(value: float) -> str:
    return f"{100 * value:.1f}%"


def must_be_writable(option: str, path: str | None, kinds: tuple[str, ...] = TABLES) -> None:
    """Checks a file to be written before the work that fills it: its ending, its folder, that it is none."""
    if path is None:
        return
    target = Path(path)
    if target.suffix.lower() not in kinds:
        either = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        raise InputError(f"{option} {path}: the name must end in {either}")
    if target.is_dir():
        raise InputError(f"{option} {path}: is a folder; name a file")
    if not target.parent.is_dir():
        raise InputError(f"{option} {path}: no folder {target.parent}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{option} {path}: the folder is read-only; choose another")


@contextlib.contextmanager
def progress(title: str, epochs: int, quiet: bool) -> Iterator[OnEpoch | None]:
    """A function to call with each epoch's row: it moves a bar on stderr, or prints a line now and then.

    `title` must be safe to print.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        # The time left is at most this: training may stop before the last epoch.
        columns = (MofNCompleteColumn(), TextColumn("{task.fields[text]}"), TimeRemainingColumn(compact=True))
        with bar(TextColumn(escape(title)), BarColumn(14), *columns, TextColumn("left")) as shown:
            task = shown.add_task("", total=epochs, text="")
            yield lambda row: shown.update(task, completed=row["epoch"], text=_numbers(row))
    else:
        yield _line_now_and_then(title, epochs)


def bar(*columns: ProgressColumn) -> Progress:
    """On stderr, gone when done."""
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _line_now_and_then(title: str, epochs: int) -> OnEpoch:
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
    return f"{shown}, val. {share(row['val_accuracy'])}" if "val_accuracy" in row else shown
