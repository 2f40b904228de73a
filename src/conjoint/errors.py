"""The errors that a user can mend, and the check that most of them come from."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any

LARGEST = 2**63 - 1


class ConjointError(Exception):
    """Something the user can act on; the command line prints it as one line and exits with status 2."""


class InputError(ConjointError, ValueError):
    """A bad argument, file or option. The message names what, the value found, and the remedy."""


class InputErrors(InputError):
    """Several faults of one input; `faults` has a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; also: ".join(faults))
        self.faults = tuple(faults)


class Faults:
    """Gathers what is wrong with an input, so that all of it is told at once."""

    MOST = 12

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """An `InputError` inside of the block is kept, and the work goes on behind it."""
        try:
            yield
        except InputErrors as error:
            self.found += error.faults
        except InputError as error:
            self.found.append(str(error))

    def raise_any(self) -> None:
        found = list(dict.fromkeys(self.found))
        if len(found) > self.MOST:
            found = [*found[: self.MOST], f"and {len(found) - self.MOST} faults more"]
        if found:
            raise InputErrors(found) if len(found) > 1 else InputError(found[0])


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


def is_number(value: Any) -> bool:
    """Whether it is a finite number of Python's own."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) <= sys.float_info.max


def check_whole(name: str, value: Any, least: int, most: int = LARGEST, remedy: str = "") -> None:
    if not is_whole(value, least, most):
        raise InputError(f"{name}={value!r}: {remedy or f'give a whole number, {least} or more'}")


# How an argument is spelt for whoever typed it: `text=bio` in Python, `--text bio` on the command line.
spelling: ContextVar[Callable[[str, str], str]] = ContextVar("spelling", default="{}={}".format)


def argument(name: str, value: object = "") -> str:
    return spelling.get()(name, str(value))
