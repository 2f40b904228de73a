"""AUC against counting pairs, intervals against simulation."""

import numpy as np
import pytest

from conjoint.selection.diagnosis import auc, share


def test_auc_counts_the_pairs_in_order_and_ties_for_half() -> None:
    scores = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 0.0])
    positive = np.array([True, False, True, False, True, False])
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[positive] for b in scores[~positive]]
    found = auc(scores, positive)
    assert found is not None and found.value == pytest.approx(np.mean(pairs))
    assert found.low < found.value < found.high


def test_one_group_alone_has_no_auc() -> None:
    assert auc([1.0, 2.0], [True, True]) is None and auc([], []) is None


def test_a_perfect_order_of_few_leaves_doubt_and_of_many_hardly_any() -> None:
    few, many = (auc(np.arange(2 * n), np.arange(2 * n) >= n) for n in (4, 400))
    assert few is not None and many is not None
    assert few.value == many.value == few.high == 1.0
    assert few.low < 0.75 and many.low > 0.99


@pytest.mark.parametrize(("ups", "downs"), [(8, 12), (60, 20)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(ups: int, downs: int) -> None:
    """Two bell curves a standard deviation apart: the AUC is Phi(1 / sqrt 2) = 0.760."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        scores = np.concatenate([rng.standard_normal(ups) + 1.0, rng.standard_normal(downs)])
        found = auc(scores, np.arange(ups + downs) < ups)
        assert found is not None
        held += found.low <= 0.7602 <= found.high
    assert held / 400 > 0.92


def test_a_share_has_wilsons_interval() -> None:
    found = share(8, 10)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.490, abs=0.001), pytest.approx(0.943, abs=0.001))
    assert share(0, 0) is None
