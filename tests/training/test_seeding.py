"""Ctrl-C while something trains, and what a seed decides."""

import signal
import threading

import numpy as np
import pytest
import torch

from conjoint.training.seeding import build_seeded, deferred_interrupt, own_randomness, seed_torch


def test_the_first_interrupt_is_noted_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), deferred_interrupt(True) as event:
        assert signal.getsignal(signal.SIGINT) is not before and not event.is_set()
        signal.raise_signal(signal.SIGINT)
        assert event.is_set()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_where_nobody_asks_an_interrupt_is_as_usual() -> None:
    before, found = signal.getsignal(signal.SIGINT), list[bool]()
    with deferred_interrupt(False) as event:
        assert signal.getsignal(signal.SIGINT) is before and not event.is_set()

    def other() -> None:
        with deferred_interrupt(True) as event:
            found.append(event.is_set() or signal.getsignal(signal.SIGINT) is not before)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [False]


def test_words_are_mixed_into_one_seed() -> None:
    with own_randomness():
        draws = []
        for words in ((1, 2), (1, 2), (2, 1), (1, 2, 3)):
            seed_torch(*words)
            draws.append(float(torch.rand(())))
        mixed = int(np.random.SeedSequence([1, 2]).generate_state(1, np.uint64)[0]) >> 1
        torch.manual_seed(mixed)
        assert draws[0] == draws[1] == float(torch.rand(())) and len(set(draws)) == 3
    state = torch.get_rng_state()
    one, two, three = (build_seeded(lambda: torch.rand(3), seed) for seed in (4, 4, 5))
    assert torch.equal(one, two) and not torch.equal(one, three) and torch.equal(state, torch.get_rng_state())
