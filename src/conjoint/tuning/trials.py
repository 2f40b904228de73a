"""Trials on disk: one JSON object per line, appended when a trial is done. Killed at any time, a search loses
the trial in progress."""

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..training.runs.storage import read_text, storage_errors
from .space import distributions

FILE = "trials.jsonl"
LIMIT = 64 * 1024**2


@dataclass(frozen=True)
class Trial:
    """One point of the space and how it did on the validation nodes, over a few seeds."""

    point: dict[str, Any]
    val_accuracy: float
    val_loss: float
    seconds: float

    @property
    def merit(self) -> tuple[float, float]:
        """Accuracy first, the lower loss between equals."""
        return self.val_accuracy, -self.val_loss


def best_of(trials: Iterable[Trial]) -> Trial:
    return max(trials, key=lambda trial: trial.merit)


def append_trial(folder: Path, trial: Trial) -> None:
    path = folder / FILE
    line = json.dumps(asdict(trial), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    with storage_errors(path), open(path, "ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_trials(folder: Path) -> list[Trial]:
    """What earlier searches have tried. A last line without an end, left by a killed one, is cut off."""
    path = folder / FILE
    if not path.exists():
        return []
    text = read_text(path, LIMIT, "the trials")
    whole = text.rfind("\n") + 1
    if whole < len(text):
        with storage_errors(path), open(path, "r+b") as file:
            file.truncate(len(text[:whole].encode()))
    return [_trial(line, path, number) for number, line in enumerate(text[:whole].splitlines(), start=1)]


def _trial(line: str, path: Path, number: int) -> Trial:
    try:
        trial = Trial(**json.loads(line))
        numbers = (trial.val_accuracy, trial.val_loss, trial.seconds)
        sound = all(isinstance(value, int | float) and math.isfinite(value) for value in numbers)
        sound = sound and _is_in_space(trial.point)
    except (ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise InputError(
            f"{path} line {number}: not a trial of this search; delete the line, or choose another --out"
        )
    return trial


def _is_in_space(point: Any) -> bool:
    space = distributions()
    if not isinstance(point, dict) or point.keys() != space.keys():
        return False
    try:
        return all(
            space[name]._contains(space[name].to_internal_repr(value)) for name, value in point.items()
        )
    except ValueError:
        return False
