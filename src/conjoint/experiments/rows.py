"""One training run as a value, and its row on disk.

What a run is decides its key; the key decides whether it was done already. A row is one line of JSON in the
file of its data set, appended and never rewritten. A process that is killed while it writes leaves a last
line without an end: readers ignore it, the next writer cuts it off.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import InputError, is_number
from ..storage import append_line, read_text, storage_errors, sync_file, sync_folder

Row = dict[str, Any]
LIMIT = 512 * 1024**2  # bytes
ACCURACIES = ("test_accuracy", "all_accuracy")
MEASURED = (*ACCURACIES, "parameters", "epochs", "fit_seconds", "grown_mib")


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides the numbers of a run, and nothing else."""

    model: str  # a name of `conjoint.nn.zoo`, or of a learner in research
    dataset: str
    split: str  # with seed and settings: arguments of `conjoint.data.make_split`
    seed: int  # of the initial weights and of training
    split_seed: int = 0
    source: str | None = None  # with dataset and features: arguments of `conjoint.data.load_graph`
    features: str | None = None
    rule: str = "val-loss"  # which epoch is kept
    model_settings: Mapping[str, Any] = field(default_factory=dict)  # for `zoo.build`
    train_settings: Mapping[str, Any] = field(default_factory=dict)  # for `TrainConfig`, but seed and rule
    variant: Mapping[str, Any] = field(default_factory=dict)  # changes of the graph, see research/damage.py
    split_settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The same for equal specs on any machine and day; numbers count by value, so 1 and 1.0 are one."""
        parts = asdict(self)
        if not parts["split_settings"]:
            del parts["split_settings"]  # younger than the first rows, whose keys must stand
        plain = json.loads(json.dumps(parts, allow_nan=False), parse_int=float)
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        return f"{self.model} on {self.dataset}, {self.split} {self.split_seed}, seed {self.seed}"


def spec_from(row: Mapping[str, Any]) -> RunSpec:
    """The spec that a row was made from."""
    given = {part.name: row[part.name] for part in fields(RunSpec) if part.name in row}
    return RunSpec(**given)


def rows_file(folder: Path, dataset: str) -> Path:
    return folder / f"{dataset}.jsonl"


def read_rows(folder: Path) -> list[Row]:
    """Every complete row of every file, in a stable order; where a key comes twice the first counts."""
    rows: dict[str, Row] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(read_text(path, LIMIT, "the results").split("\n")[:-1], start=1):
            try:
                row = json.loads(line)
                sound = spec_from(row).key == row["key"] and _has_results(row)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                sound = False
            if not sound:
                raise InputError(
                    f"{path} line {number}: not a result row; delete the line to have that run done again"
                )
            rows.setdefault(row["key"], row)
    return list(rows.values())


def append_row(folder: Path, row: Mapping[str, Any]) -> None:
    """Add one row and wait until the disk has it."""
    path = rows_file(folder, row["dataset"])
    line = json.dumps(row, allow_nan=False, separators=(",", ":"))
    with storage_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
    append_line(path, line)
    sync_file(path)
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


def _has_results(row: Row) -> bool:
    """Whether every number that a table may show is there, as a number; a failed run has none to show."""
    if not isinstance(row["made_with"], dict) or not is_number(row["seconds"]):
        return False
    if "failed" in row:
        return isinstance(row["failed"], str)
    release = row.get("release", {})
    measured = [row[name] for name in MEASURED] + [release[name] for name in ACCURACIES if name in release]
    return isinstance(release, dict) and all(map(is_number, measured)) and row["epochs"] >= 1
