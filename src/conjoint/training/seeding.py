"""Random choices that follow from (seed, epoch) alone, and Ctrl-C that waits for the end of an epoch."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

import numpy as np
import torch

Built = TypeVar("Built")


@contextlib.contextmanager
def own_randomness(device: torch.device | None = None) -> Iterator[None]:
    """Inside, seeding and drawing are free; outside, torch's generators never notice."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def seed_torch(*words: int, device: torch.device | None = None) -> None:
    """Seed torch from several numbers: (seed, epoch), or (seed, epoch, batch, ...).

    Every epoch starts here, so resuming at one needs no stored random state. Only inside `own_randomness`.
    The CPU's generator is seeded by itself: torch.manual_seed would also reseed every GPU of the machine.
    """
    mixed = int(np.random.SeedSequence(list(words)).generate_state(1, np.uint64)[0]) >> 1
    torch.default_generator.manual_seed(mixed)
    if device is not None and device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(mixed)


def build_seeded(build: Callable[[], Built], seed: int) -> Built:
    """What `build` makes when its random choices come from `seed`: the initial weights, for example."""
    with own_randomness():
        seed_torch(seed, 0)
        return build()


@contextlib.contextmanager
def deferred_interrupt(wanted: bool) -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event, so that a checkpoint holds whole epochs only; a second interrupts at
    once, as usual."""
    interrupt = threading.Event()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread receives signals
        return

    def request(number: int, frame: FrameType | None) -> None:
        if interrupt.is_set():
            raise KeyboardInterrupt
        interrupt.set()

    before = signal.signal(signal.SIGINT, request)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
