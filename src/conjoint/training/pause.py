"""Ctrl-C that waits for the end of the epoch, so that the checkpoint holds whole epochs only."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Pause:
    requested = False


@contextlib.contextmanager
def deferred_interrupt(wanted: bool) -> Iterator[Pause]:
    """The first Ctrl-C sets `requested`; a second one interrupts at once, as usual."""
    pause = Pause()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield pause  # only the main thread receives signals
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if pause.requested:
            raise KeyboardInterrupt
        pause.requested = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield pause
    finally:
        signal.signal(signal.SIGINT, before)
