"""The errors that a user can mend, and the check that most of them come from."""

from numbers import Integral
from typing import Any

LARGEST = 2**63 - 1


class ConjointError(Exception):
    """Something the user can act on; the command line prints it as one line and exits with status 2."""


class InputError(ConjointError, ValueError):
    """A bad argument, file or option. The message names what, the value found, and the remedy."""


class StorageError(ConjointError):
    """A file could not be written: no space, no permission. What was written before is intact."""


class Diverged(ConjointError):
    """Training left the finite numbers. The message names the epoch and what to change."""


class Interrupted(ConjointError):
    """Work was stopped from outside and can be resumed. The message says how."""

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch  # the last one that a training finished


def is_whole(value: Any, least: int, most: int = LARGEST) -> bool:
    """Whether it is a whole number in these bounds; NumPy's count, true and false do not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def check_whole(name: str, value: Any, least: int, most: int = LARGEST, remedy: str = "") -> None:
    if not is_whole(value, least, most):
        raise InputError(f"{name}={value!r}: {remedy or f'give a whole number, {least} or more'}")
