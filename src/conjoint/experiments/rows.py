"""Rows on disk: one JSON object per line, one file per data set, appended and never rewritten.

A process that is killed while it writes leaves a last line without an end. Readers ignore it, the next writer
cuts it off.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..training.runs.storage import read_text, storage_errors, sync_folder
from .spec import spec_from

Row = dict[str, Any]
LIMIT = 512 * 1024**2


def rows_file(folder: Path, dataset: str) -> Path:
    return folder / f"{dataset}.jsonl"


def read_rows(folder: Path) -> list[Row]:
    """Every complete row of every file, in a stable order; where a key comes twice the first counts."""
    rows: dict[str, Row] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for row in _read(path):
            rows.setdefault(row["key"], row)
    return list(rows.values())


def append_row(folder: Path, row: Mapping[str, Any]) -> None:
    """Add one row and wait until the disk has it."""
    path = rows_file(folder, row["dataset"])
    line = json.dumps(row, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    with storage_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with open(path, "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(folder)


def cut_torn_lines(folder: Path) -> None:
    """Remove what a killed writer left behind its last complete row."""
    for path in folder.glob("*.jsonl"):
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with storage_errors(path), open(path, "r+b") as file:
                file.truncate(whole)


def select(rows: Iterable[Row], keys: Iterable[str]) -> list[Row]:
    """The rows of these runs, those that are there."""
    wanted = set(keys)
    return [row for row in rows if row["key"] in wanted]


def _read(path: Path) -> list[Row]:
    rows = []
    lines = read_text(path, LIMIT, "the results").split("\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            sound = spec_from(row).key == row["key"] and _has_results(row)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            sound = False
        if not sound:
            raise InputError(
                f"{path} line {number}: not a result row; delete the line to have that run done again"
            )
        rows.append(row)
    return rows


def _has_results(row: Row) -> bool:
    """Whether every number that a table may show is there, as a number; a failed run has none to show."""
    if not isinstance(row["made_with"], dict) or not _is_number(row["seconds"]):
        return False
    if "failed" in row:
        return isinstance(row["failed"], str)
    measured = [row[name] for name in MEASURED]
    release = row.get("release", {})
    if not isinstance(release, dict) or not all(map(_is_number, measured)) or row["epochs"] < 1:
        return False
    return all(_is_number(release[name]) for name in ACCURACIES if name in release)


ACCURACIES = ("test_accuracy", "all_accuracy")
MEASURED = (*ACCURACIES, "parameters", "epochs", "fit_seconds", "grown_mib")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
