"""The start of a worker process. It imports nothing heavy: what a worker needs comes with its first run."""

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Read by the numeric libraries when they start. With few cores, one thread in each of several processes does
# more than several threads in one.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def environment_of_workers() -> Iterator[None]:
    """Processes started inside have one thread each; our own libraries, started already, keep theirs."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start() -> None:
    """No worker outlives a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
