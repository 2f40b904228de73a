"""One process at a time in a run folder. The system drops the lock when its holder dies, however it dies."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import InputError
from .storage import storage_errors

try:
    import fcntl
except ImportError:  # Windows has no flock; two trainers in one folder are then the user's own care
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    with storage_errors(folder):
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{folder}: another process trains there; wait for it or choose another --out"
            ) from None
        yield
    finally:
        os.close(handle)
