"""The control is what it claims, C is chosen without the test nodes, and choices train what they chose."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint.errors import InputError
from conjoint.experiments.execute import execute
from conjoint.experiments.runner import run
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split, build_split
from fake_rows import cora
from research import learners
from research.learners import smooth_logistic
from small_training import small_data, small_split


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)


def dense_guess(data: Graph, split: Split, c: float) -> np.ndarray:
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
    monkeypatch.setattr(learners, "STRENGTHS", (10.0,))
    data, split = small_data(), small_split()
    if classes == 2:
        data = data.changed(y=(data.y > 0).long())
    row, guess, y = smooth_logistic(data, split, {}), dense_guess(data, split, 10.0), data.y.numpy()
    test = split.reveal_test().numpy()
    assert row["test_accuracy"] == np.mean(guess[test] == y[test])
    assert row["all_accuracy"] == np.mean(guess == y)
    assert row["parameters"] == classes * (data.x.size(1) + 1)


def test_the_test_labels_have_no_say() -> None:
    data, split = small_data(), small_split()
    before = smooth_logistic(data, split, {})
    test = split.reveal_test()
    data = data.changed(y=data.y.clone())
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


def test_auto_says_what_it_chose_and_is_that_model() -> None:
    spec = cora("cat-i-mf")
    row = execute(replace(spec, model="cat-auto", model_settings={**spec.model_settings, "hidden": 2}))
    assert row["chosen"].startswith(("cat-i-", "cat-e-")) and row["model"] == "cat-auto"
    chosen = execute(replace(spec, model=row["chosen"], model_settings={**spec.model_settings, "hidden": 2}))
    for name in ("val_loss", "test_accuracy", "parameters"):
        assert row[name] == chosen[name]


@pytest.mark.parametrize(
    ("variant", "may_be"),
    [
        ({}, {"spread-trust", "gated-trust"}),
        ({"move-features": {"share": 0.75}}, {"spread-trust", "spread-zero"}),
    ],
)
def test_the_recommended_setting_says_what_it_trained(variant: dict[str, Any], may_be: set[str]) -> None:
    spec = replace(cora("cat-i-mf"), model="spread-trust", model_settings={}, variant=variant)
    row = execute(replace(spec, model="recommended"))
    assert row["chosen"] in may_be
    rivals = {name: execute(replace(spec, model=name)) for name in may_be}
    assert row["val_accuracy"] == max(rival["val_accuracy"] for rival in rivals.values())
    assert row["val_loss"] == rivals[row["chosen"]]["val_loss"]


def test_noise_goes_with_the_seed_and_reaches_what_is_made_from_the_graph() -> None:
    noisy = replace(cora("gat-klap"), variant={"add-edges": {"share": 0.5}})
    one, again = execute(noisy), execute(noisy)
    other = execute(replace(noisy, seed=2))
    clean = execute(cora("gat-klap"))
    assert one["val_loss"] == again["val_loss"]
    assert len({row["val_loss"] for row in (one, other, clean)}) == 3


def test_a_control_gives_a_row_like_a_network() -> None:
    spec = replace(cora("gcn"), model="smooth-logistic", model_settings={}, train_settings={})
    row, network = execute(spec), execute(cora("gcn"))
    assert set(network) - set(row) == {"release"} and "failed" not in row
    assert row["test_accuracy"] > 0.75 and row["parameters"] == 7 * 1434
    told = ("val_loss", "val_accuracy", "test_accuracy", "all_accuracy")
    again = execute(replace(spec, seed=spec.seed + 1))  # the same split: nothing else decides the row
    assert {name: row[name] for name in told} == {name: again[name] for name in told}
    noisy = execute(replace(spec, variant={"add-edges": {"share": 1.0}}))
    assert noisy["test_accuracy"] < row["test_accuracy"]


def test_a_worker_process_finds_them_too(tmp_path: Path) -> None:
    spec = replace(cora("gcn"), model="smooth-logistic", model_settings={}, train_settings={})
    noisy = replace(spec, variant={"add-edges": {"share": 1.0}})
    [row] = run([noisy], tmp_path, execute)
    assert row["key"] == noisy.key and row["test_accuracy"] == execute(noisy)["test_accuracy"]
