"""Random choices that follow from (seed, epoch) alone, and leave the caller's random state as it was."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch

Built = TypeVar("Built")


@contextmanager
def own_randomness(device: torch.device | None = None) -> Iterator[None]:
    """Inside, seeding and drawing are free; outside, torch's generators never notice."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def seed_epoch(seed: int, epoch: int, device: torch.device | None = None) -> None:
    """Seed torch for one epoch. Resuming at an epoch needs no stored random state, since it starts here.

    Only inside `own_randomness`. The CPU's generator is seeded by itself: torch.manual_seed would also reseed
    every GPU of the machine.
    """
    seed_words([seed, epoch], device)


def seed_words(words: Sequence[int], device: torch.device | None = None) -> None:
    """Seed torch from several numbers, as `seed_epoch` does from two. Only inside `own_randomness`."""
    mixed = int(np.random.SeedSequence(list(words)).generate_state(1, np.uint64)[0]) >> 1
    torch.default_generator.manual_seed(mixed)
    if device is not None and device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(mixed)


def build_seeded(build: Callable[[], Built], seed: int) -> Built:
    """What `build` makes when its random choices come from `seed`: the initial weights, for example."""
    with own_randomness():
        seed_epoch(seed, 0)
        return build()
