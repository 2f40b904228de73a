"""How much members count, and at which temperature."""

import numpy as np
import pytest

from conjoint.selection.weighing import temperature, weigh
from conjoint.training.metrics import METRICS

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 120)
PERFECT = 0.9 * np.eye(3)[Y] + 0.1 / 3
NOISE = [RNG.dirichlet(np.ones(3), 120) for _ in range(3)]


def half_right(seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Right about 60 % of the nodes, and no surer of these."""
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(120) < 0.6, Y, rng.integers(0, 3, 120))
    return 0.6 * np.eye(3)[said] + 0.4 / 3


def test_a_single_member_counts_for_all() -> None:
    assert weigh(NOISE[:1], Y).tolist() == [1.0]


@pytest.mark.parametrize("metric", METRICS)
def test_a_perfect_member_takes_all(metric: str) -> None:
    certain = np.eye(3)[Y]
    assert weigh([NOISE[0], certain, NOISE[1]], Y, metric).tolist() == [0.0, 1.0, 0.0]


def test_equally_good_members_share() -> None:
    """Each is on one half of the nodes what the other is on the other half."""
    one, other = half_right(1), half_right(2)
    swapped = [np.concatenate([one, other]), np.concatenate([other, one])]
    weights = weigh(swapped, np.concatenate([Y, Y]))
    assert weights.sum() == pytest.approx(1.0) and weights.min() > 0.3


def test_what_adds_nothing_is_left_out() -> None:
    weights = weigh([PERFECT, *NOISE], Y)
    assert weights[0] > 0.95 and weights.sum() == pytest.approx(1.0)


def test_the_seed_decides() -> None:
    members = [half_right(1), half_right(2), half_right(3)]
    assert np.array_equal(weigh(members, Y, seed=4), weigh(members, Y, seed=4))


@pytest.mark.parametrize("truth", [0.5, 1.0, 2.5])
def test_a_known_temperature_is_found(truth: float) -> None:
    """Labels are drawn from p^(1/T)."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 20_000)
    q = p ** (1.0 / truth)
    q /= q.sum(axis=1, keepdims=True)
    y = (rng.random((20_000, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(max=2)
    assert temperature(p, y) == pytest.approx(truth, rel=0.05)


def test_the_temperature_stays_within_bounds() -> None:
    assert 1 / 5 < temperature(PERFECT, Y) < 1.0
    assert 1.0 < temperature(np.eye(3)[(Y + 1) % 3], Y) < 5.0
