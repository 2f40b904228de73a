"""Smoothing after the weights equals weights after smoothing, and C is chosen without the test nodes."""

from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data

from conjoint.data.splits import Split, build_split
from conjoint.errors import InputError
from conjoint.experiments import controls
from conjoint.experiments.controls import smooth_logistic
from small_training import small_data, small_split


def dense_guess(data: Data, split: Split, c: float) -> np.ndarray:
    """The same control from textbook parts: smoothed features first, then scikit-learn's own prediction."""
    from sklearn.linear_model import LogisticRegression

    a = np.eye(len(data.y))
    a[data.edge_index[1].numpy(), data.edge_index[0].numpy()] = 1.0
    walk = a / np.sqrt(np.outer(a.sum(1), a.sum(1)))
    x = data.x.numpy() / data.x.numpy().sum(1, keepdims=True)
    smooth = walk @ walk @ x
    train = split.train.numpy()
    smooth = smooth / np.linalg.norm(smooth[train], axis=1).mean()
    model = LogisticRegression(C=c, max_iter=2000).fit(smooth[train], data.y.numpy()[train])
    return model.predict(smooth)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_row_is_that_of_smoothed_features_and_logistic_regression(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "STRENGTHS", (10.0,))
    data, split = small_data(), small_split()
    if classes == 2:
        data.y = (data.y > 0).long()
    row, guess, y = smooth_logistic(data, split, {}), dense_guess(data, split, 10.0), data.y.numpy()
    test = split.reveal_test().numpy()
    assert row["test_accuracy"] == np.mean(guess[test] == y[test])
    assert row["all_accuracy"] == np.mean(guess == y)
    assert row["parameters"] == classes * (data.x.size(1) + 1)


def test_the_test_labels_have_no_say() -> None:
    data, split = small_data(), small_split()
    before = smooth_logistic(data, split, {})
    test = split.reveal_test()
    data.y = data.y.clone()
    data.y[test] = (data.y[test] + 1) % 3
    after = smooth_logistic(data, split, {})
    assert {k: after[k] for k in ("val_loss", "val_accuracy")} == {
        k: before[k] for k in ("val_loss", "val_accuracy")
    }
    assert after["test_accuracy"] < before["test_accuracy"]


def test_a_class_that_training_never_saw_costs_but_does_not_fail() -> None:
    data = small_data()
    seen = np.flatnonzero(data.y.numpy() < 2)
    rest = np.setdiff1d(np.arange(60), seen[:20])
    split = build_split(seen[:20], rest[:20], rest[20:], labels=data.y.numpy(), name="unseen")
    row = smooth_logistic(data, split, {})
    assert row["parameters"] == 2 * 13 and row["val_loss"] > 1.0


@pytest.mark.parametrize("settings", [{"hops": -1}, {"hops": 1.5}, {"C": 1.0}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="hops, a whole number"):
        smooth_logistic(small_data(), small_split(), settings)
