"""Measures against hand counts and scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from conjoint.errors import InputError
from conjoint.evaluation.metrics import accuracy, clustering, confusion, macro_f1

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def test_hand_counts() -> None:
    truth, predicted = [0, 0, 1, 1, 2], [0, 1, 1, 1, 0]
    assert accuracy(truth, predicted) == 0.6
    assert confusion(truth, predicted).tolist() == [[1, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert macro_f1(truth, predicted) == pytest.approx((0.5 + 0.8 + 0.0) / 3)


@given(PAIRS)
def test_classification_measures_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(pairs).T
    assert accuracy(truth, predicted) == pytest.approx(sk.accuracy_score(truth, predicted))
    assert macro_f1(truth, predicted) == pytest.approx(sk.f1_score(truth, predicted, average="macro"))
    expected = sk.confusion_matrix(truth, predicted, labels=range(4))
    assert np.array_equal(confusion(truth, predicted, classes=4), expected)


@given(PAIRS)
def test_hungarian_accuracy_is_the_best_over_all_namings(pairs: list[tuple[int, int]]) -> None:
    truth, clusters = np.array(pairs).T
    best = max(accuracy(truth, np.array(names)[clusters]) for names in permutations(range(4)))
    assert clustering(truth, clusters)["hungarian_accuracy"] == pytest.approx(best)


@given(PAIRS, st.permutations(range(4)))
def test_clustering_measures_do_not_care_for_names(pairs: list[tuple[int, int]], names: list[int]) -> None:
    truth, clusters = np.array(pairs).T
    plain, renamed = clustering(truth, clusters), clustering(truth, np.array(names)[clusters])
    assert plain == pytest.approx(renamed)


def test_known_clusterings() -> None:
    truth = [0, 0, 1, 1]
    assert clustering(truth, [1, 1, 0, 0]) == {"nmi": 1.0, "ari": 1.0, "hungarian_accuracy": 1.0}
    assert clustering(truth, [0, 1, 0, 1])["nmi"] == pytest.approx(0.0, abs=1e-12)
    assert clustering(truth, [0, 1, 0, 1])["ari"] == pytest.approx(-0.5)
    assert clustering(truth, [0, 1, 2, 3])["hungarian_accuracy"] == 0.5


@pytest.mark.parametrize(
    ("truth", "predicted", "says"),
    [
        ([0, 1], [0], "two lists of equal length"),
        ([], [], "truth is empty"),
        ([0, -1], [0, 1], "-1 \\(unlabelled\\)"),
        ([0.5], [0.5], "whole numbers, got float64"),
    ],
)
def test_bad_lists_are_named(truth: list[int], predicted: list[int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        accuracy(truth, predicted)


def test_too_few_classes_is_an_error() -> None:
    with pytest.raises(InputError, match="classes=2: class 3 occurs; give at least 4"):
        confusion([0, 3], [0, 0], classes=2)
