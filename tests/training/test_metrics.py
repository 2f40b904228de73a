"""What predictions are judged by: against scikit-learn, and at the edges."""

import numpy as np
import pytest
from sklearn import metrics as sk

from conjoint.errors import InputError
from conjoint.training.metrics import (
    METRICS,
    all_metrics,
    calibration_error,
    check_metric,
    majority_metrics,
    merit,
    per_class,
    roc_auc,
)

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 4, 200)
P = RNG.dirichlet(np.ones(4), 200) + 0.4 * np.eye(4)[Y]
P /= P.sum(axis=1, keepdims=True)
BEST = P.argmax(axis=1)


def test_they_are_scikit_learns() -> None:
    expected = {
        "accuracy": sk.accuracy_score(Y, BEST),
        "balanced-accuracy": sk.balanced_accuracy_score(Y, BEST),
        "macro-f1": sk.f1_score(Y, BEST, average="macro"),
        "log-loss": sk.log_loss(Y, P),
        "roc-auc": sk.roc_auc_score(Y, P, multi_class="ovr"),
        "average-precision": sk.average_precision_score(np.eye(4)[Y], P, average="macro"),
    }
    for name, value in expected.items():
        assert METRICS[name](Y, P) == pytest.approx(value), name


def test_two_classes_are_judged_by_the_second() -> None:
    y, p = (Y > 1).astype(int), np.stack([P[:, :2].sum(1), P[:, 2:].sum(1)], axis=1)
    assert METRICS["roc-auc"](y, p) == pytest.approx(sk.roc_auc_score(y, p[:, 1]))
    assert METRICS["average-precision"](y, p) == pytest.approx(sk.average_precision_score(y, p[:, 1]))


def test_equal_scores_and_classes_that_nobody_has_are_counted_as_there() -> None:
    p = np.round(P, 1)
    assert METRICS["roc-auc"](Y, p) == pytest.approx(
        np.mean([sk.roc_auc_score(c == Y, p[:, c]) for c in range(4)])
    )
    assert METRICS["average-precision"](Y, p) == pytest.approx(
        np.mean([sk.average_precision_score(c == Y, p[:, c]) for c in range(4)])
    )
    some = Y < 3  # the fourth class is said here and there, and nobody has it
    assert METRICS["macro-f1"](Y[some], P[some]) == pytest.approx(
        sk.f1_score(Y[some], BEST[some], average="macro")
    )
    assert METRICS["balanced-accuracy"](Y[some], P[some]) == pytest.approx(
        sk.recall_score(Y[some], BEST[some], labels=[0, 1, 2], average="macro")
    )


def test_calibration_error() -> None:
    sure = np.array([[0.75, 0.25]] * 8)
    assert calibration_error(np.array([0] * 6 + [1] * 2), sure) == pytest.approx(0.0)
    assert calibration_error(np.array([1] * 8), sure) == pytest.approx(0.75)
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert calibration_error(np.array([0, 1]), certain) == 0.0


def test_classes_that_do_not_occur_are_left_out() -> None:
    there = Y < 3
    among = [sk.roc_auc_score(Y[there] == c, P[there, c]) for c in range(3)]
    assert roc_auc(Y[there], P[there]) == pytest.approx(np.mean(among))
    assert roc_auc(np.zeros(5, dtype=int), P[:5]) == 0.5
    assert roc_auc(np.ones(5, dtype=int), P[:5, :2]) == 0.5
    assert all(np.isfinite(value) for value in all_metrics(np.zeros(5, dtype=int), P[:5]).values())


def test_a_probability_of_0_has_a_finite_loss() -> None:
    assert METRICS["log-loss"](np.array([1]), np.array([[1.0, 0.0]])) == pytest.approx(-np.log(1e-12))


def test_higher_merit_is_better() -> None:
    for name in METRICS:
        assert merit(name, Y, np.eye(4)[Y]) > merit(name, Y, np.eye(4)[(Y + 1) % 4])


def test_all_of_them_and_the_share_of_the_most_common_class() -> None:
    found = all_metrics(Y, P)
    assert found.keys() == {*METRICS, "majority"}
    assert found["majority"] == np.bincount(Y).max() / 200


def test_one_row_a_class() -> None:
    rows = per_class(np.array([0, 0, 1]), np.eye(3)[[0, 1, 1]], ["a", "b", "c"])
    assert [row["class"] for row in rows] == ["a", "b", "c"] and [row["nodes"] for row in rows] == [2, 1, 0]
    assert rows[0] == {"class": "a", "nodes": 2, "precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)}
    assert rows[1]["precision"] == 0.5 and rows[2]["f1"] == 0.0


def test_an_unknown_metric_is_told() -> None:
    with pytest.raises(InputError, match="metric 'luck' is not known; choose one of accuracy"):
        check_metric("luck")


def test_the_majority_has_no_rank_and_the_shares_of_the_classes() -> None:
    y = np.array([0] * 6 + [1] * 3 + [2])
    found = majority_metrics(y, 3)
    assert found["accuracy"] == 0.6 and found["balanced-accuracy"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["roc-auc"] == 0.5 and found["calibration-error"] == 0.0
    assert found["log-loss"] == pytest.approx(-np.mean(np.log([0.6] * 6 + [0.3] * 3 + [0.1])), abs=1e-6)
