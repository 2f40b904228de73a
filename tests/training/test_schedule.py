"""Learning rates, epoch by epoch."""

from itertools import pairwise

import pytest

from conjoint.training.config import LEAST_SHARE, SCHEDULES, TrainConfig


def rate(schedule: str, epoch: int, epochs: int, warmup: int) -> float:
    """Share of the learning rate."""
    return TrainConfig(schedule=schedule, epochs=epochs, warmup=warmup, lr=1.0).lr_at(epoch)


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_a_schedule_starts_at_one_and_never_rises_or_reaches_zero(name: str) -> None:
    rates = [rate(name, epoch, 50, 0) for epoch in range(1, 51)]
    assert rates[0] == 1.0
    assert all(later <= earlier for earlier, later in pairwise(rates))
    assert min(rates) >= LEAST_SHARE


def test_cosine_and_linear_are_halfway_in_the_middle() -> None:
    assert rate("cosine", 26, 51, 0) == pytest.approx(0.5)
    assert rate("linear", 26, 51, 0) == pytest.approx(0.5)
    assert rate("constant", 51, 51, 0) == 1.0


def test_warmup_climbs_then_the_schedule_begins() -> None:
    assert [rate("linear", epoch, 13, 3) for epoch in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_short_runs_and_long_warmups_stay_within_bounds(epochs: int) -> None:
    for name in SCHEDULES:
        assert all(0 < rate(name, epoch, epochs, 4) <= 1 for epoch in range(1, epochs + 1))
