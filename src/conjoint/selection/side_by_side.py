"""Trainings side by side: processes with one thread each, which is faster than one training with all threads.

Each is a copy of this process (fork), so that it has the graph without reading it again. It is sent one
training at a time and answers with the rows of its epochs, then with what came out.
"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from ..errors import ConjointError

Row = dict[str, Any]
Work = Callable[[Any, Callable[[Row], object]], Any]
PATIENCE = 0.2  # seconds between looks at whether Ctrl-C was pressed, and between news of epochs
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def possible() -> bool:
    """Whether this process may be copied: on Linux, unless it is such a helper itself or uses a GPU."""
    return (
        sys.platform == "linux"
        and not multiprocessing.current_process().daemon
        and not torch.cuda.is_initialized()
    )


class Workers:
    """So many processes, each of which can do `work(job, on_epoch)`. Close them in any case.

    A job is whatever names a training and can be sent.
    """

    def __init__(self, count: int, work: Work) -> None:
        self.idle: list[Connection] = []
        self.busy: dict[Connection, Any] = {}
        self.rows: dict[Any, list[Row]] = {}
        self.done: dict[Any, tuple[bool, Any]] = {}
        context = multiprocessing.get_context("fork")
        self.processes = []
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, work, os.getpid()), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self.idle.append(here)

    def knows(self, job: Any) -> bool:
        """Whether it was started."""
        return job in self.done or job in self.busy.values()

    def start(self, job: Any) -> None:
        """Only while a process is idle."""
        connection = self.idle.pop()
        connection.send(job)
        self.busy[connection] = job
        self.rows[job] = []

    def turn(self) -> None:
        """Take in what the processes say, waiting a moment for it."""
        for connection in wait(list(self.busy), PATIENCE):
            assert isinstance(connection, Connection)
            job = self.busy[connection]
            try:
                kind, told = connection.recv()
            except EOFError:
                raise ConjointError(
                    "a training's process was ended from outside, most likely for lack of memory; "
                    "OMP_NUM_THREADS=1 trains one at a time"
                ) from None
            if kind == "epochs":
                self.rows[job] += told
                continue
            self.done[job] = kind == "done", told
            del self.busy[connection]
            self.idle.append(connection)

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        for connection in (*self.idle, *self.busy):
            connection.close()


def _serve(connection: Connection, work: Work, parent: int) -> None:
    """Work until the parent is gone. Ctrl-C is the parent's: it ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # gone before we asked
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are loaded from here on
    torch.set_num_threads(1)
    with threadpool_limits(1):
        while True:
            job, told = connection.recv(), _Told(connection)
            try:
                found = work(job, told)
                told.send()
                connection.send(("done", found))
            except ConjointError as error:
                connection.send(("failed", error))
            except Exception:  # a fault of ours: not every exception can be sent
                connection.send(("failed", RuntimeError(traceback.format_exc())))


class _Told:
    """Rows of epochs on their way to the parent, several at a time: it has something better to do."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.rows, self.last = connection, list[Row](), time.monotonic()

    def __call__(self, row: Row) -> None:
        self.rows.append(row)
        if time.monotonic() - self.last > PATIENCE:
            self.send()

    def send(self) -> None:
        self.connection.send(("epochs", self.rows))
        self.rows, self.last = [], time.monotonic()
