"""Labels that count more than others: against the plain definition, scikit-learn's, and repeated rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.nn.model import NodeModel
from conjoint.nn.zoo import build
from conjoint.training import Batch, BatchConfig, TrainConfig, closed_form, config_from, config_to, fit
from conjoint.training.closed_form import BOOSTING, ROUNDS, fit_boosting, fit_linear, fit_propagation
from conjoint.training.config import read_toml, write_toml
from conjoint.training.loss import class_factors, label_weights, objective
from conjoint.training.steps import part_of, whole_graph
from scale_runs import CLASSES as MANY
from scale_runs import FEATURES, graph_and_split
from small_training import CLASSES, NODES, small_data, small_model, small_split

GRAPH = small_data()
SPLIT = replace(
    small_split(), train=small_split().train[[0, 1, 3, 4, 5, 6]]
)  # no two classes have as many labels
TRAIN, Y = SPLIT.train.numpy(), GRAPH.y.numpy()
PLAIN = TrainConfig(epochs=5, patience=0)
BALANCED = replace(PLAIN, class_weight="balanced")


def test_balanced_is_scikit_learns() -> None:
    assert len(set(np.bincount(Y[TRAIN]))) == CLASSES
    found = class_factors(GRAPH, SPLIT.train, "balanced")
    theirs = compute_class_weight("balanced", classes=np.arange(CLASSES), y=Y[TRAIN])
    assert found is not None and np.allclose(found.numpy(), theirs)


def test_a_class_without_labels_changes_nothing_for_the_others() -> None:
    some = SPLIT.train[GRAPH.y[SPLIT.train] != 1]
    found = class_factors(GRAPH, some, "balanced")
    kept = [k for k in range(CLASSES) if k != 1]
    theirs = compute_class_weight("balanced", classes=np.array(kept), y=Y[some.numpy()])
    assert found is not None and np.allclose(found[kept].numpy(), theirs) and float(found[1]) == 1.0


def test_weights_are_one_on_average_and_only_ratios_count() -> None:
    names = GRAPH.class_names
    one, same = ({name: scale * (1.0 + k) for k, name in enumerate(names)} for scale in (1.0, 7.0))
    found = [label_weights(GRAPH, SPLIT.train, replace(PLAIN, class_weight=given)) for given in (one, same)]
    assert found[0] is not None and found[1] is not None and torch.allclose(found[0], found[1])
    assert float(found[0][SPLIT.train].mean()) == pytest.approx(1.0, abs=1e-6)
    ratio = found[0][GRAPH.y == 1][0] / found[0][GRAPH.y == 0][0]
    assert float(ratio) == pytest.approx(2.0)
    assert label_weights(GRAPH, SPLIT.train, PLAIN) is None


@pytest.mark.parametrize("passes", [1, 3])
def test_the_loss_is_its_definition(passes: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(passes, 5, 4, generator=generator, dtype=torch.double)
    labels, weight = torch.tensor([0, 3, 1]), torch.tensor([0.5, 2.0, 4.0], dtype=torch.double)
    pick = torch.tensor([4, 0, 2])
    found = objective(logits, labels, pick, torch.zeros((), dtype=torch.double), PLAIN, 1, weight)
    p = logits.softmax(dim=2).numpy()[:, pick.numpy()]
    each = -np.log(p[:, np.arange(3), labels.numpy()]).mean(axis=0)
    assert float(found.prediction) == pytest.approx(float((weight.numpy() * each).sum() / 6.5))


@pytest.mark.parametrize("field", ["whole", "receptive"])
def test_equal_weights_are_no_weights(field: str) -> None:
    plain = fit(small_model(), GRAPH, SPLIT, replace(PLAIN, field=field))
    equal = GRAPH.changed(label_weight=torch.full((NODES,), 3.0))
    for graph, config in (
        (equal, PLAIN),
        (GRAPH, replace(PLAIN, class_weight={"a": 2.0, "b": 2.0, "c": 2.0})),
    ):
        found = fit(small_model(), graph, SPLIT, replace(config, field=field))
        for row, expected in zip(found.history, plain.history, strict=True):
            assert row == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("field", ["whole", "receptive"])
def test_a_weight_of_zero_is_a_label_that_does_not_train(field: str) -> None:
    half = torch.ones(NODES)
    half[SPLIT.train[::2]] = 0.0
    config = replace(PLAIN, field="whole")  # dropout draws differ between fields
    found = fit(small_model(), GRAPH.changed(label_weight=half), SPLIT, replace(config, field=field))
    if field == "whole":
        fewer = fit(small_model(), GRAPH, replace(SPLIT, train=SPLIT.train[1::2]), config)
        for row, expected in zip(found.history, fewer.history, strict=True):
            assert row == pytest.approx(expected, rel=1e-4)
    assert found.history[-1]["loss"] < found.history[0]["loss"]


def test_the_validation_loss_is_weighted_as_the_training_loss() -> None:
    fitted = fit(small_model(), GRAPH, SPLIT, BALANCED)
    val = part_of(whole_graph(fitted.model, GRAPH, BALANCED), SPLIT.val, fitted.model, "auto")
    weight = compute_class_weight("balanced", classes=np.arange(CLASSES), y=Y[TRAIN])
    factors = torch.tensor(weight, dtype=torch.float32)
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(val.logits(fitted.model), val.labels, factors)
    assert fitted.metrics["val_loss"] == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
def test_one_batch_of_everything_weighs_as_the_full_graph(kind: str) -> None:
    data, split = graph_and_split()
    config = TrainConfig(epochs=4, patience=0, lr=0.02, class_weight="balanced")
    weight = torch.rand(as_graph(data).num_nodes, generator=torch.Generator().manual_seed(0)) + 0.1
    graph = as_graph(data).changed(label_weight=weight)

    def network() -> NodeModel:
        sizes = {"features": FEATURES, "classes": MANY, "num_nodes": graph.num_nodes}
        return build("gat", **sizes, seed=0, hidden=4, heads=2, dropout=0.0)

    whole = fit(network(), graph, split, config)
    everything = BatchConfig(kind=kind, size=1000, fanout=(1000,))
    pieces = fit(network(), graph, split, config, batches=everything)
    for one, other in zip(whole.history, pieces.history, strict=True):
        assert other == pytest.approx(one, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("given", ["balanced", {"a": 5.0, "c": 0.5}])
def test_logistic_regression_is_scikit_learns(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_form, "STRENGTHS", (1.0,))
    config = replace(PLAIN, class_weight=given)
    model = fit_linear(GRAPH, SPLIT, "0", config)
    with torch.no_grad():
        found = model.probabilities(GRAPH.x, GRAPH.adjacency).numpy()
    x = GRAPH.x.double().numpy()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    weight = label_weights(GRAPH, SPLIT.train, config)
    assert weight is not None
    theirs = LogisticRegression(C=1.0, max_iter=5000, tol=1e-8)
    theirs.fit(x[TRAIN], Y[TRAIN], sample_weight=weight.double().numpy()[TRAIN])
    assert np.abs(found - theirs.predict_proba(x)).max() < 2e-3
    with torch.no_grad():
        plain = fit_linear(GRAPH, SPLIT, "0").probabilities(GRAPH.x, GRAPH.adjacency).numpy()
    assert np.abs(found - plain).max() > 1e-3


def test_boosting_is_scikit_learns() -> None:
    model = fit_boosting(GRAPH, SPLIT, 0, config=replace(PLAIN, class_weight={"a": 20.0}))
    with torch.no_grad():
        found = model.probabilities(GRAPH.x, GRAPH.adjacency).numpy()
        table = model.columns(GRAPH.x, GRAPH.adjacency).double().numpy()
    weight = label_weights(GRAPH, SPLIT.train, replace(PLAIN, class_weight={"a": 20.0}))
    assert weight is not None
    maker = HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=0, **BOOSTING)
    maker.fit(table[TRAIN], Y[TRAIN], sample_weight=weight.double().numpy()[TRAIN])
    stages = list(maker.staged_predict_proba(table))
    assert np.abs(found - stages[model.rounds - 1]).max() < 1e-5


def test_label_propagation_ignores_them() -> None:
    one = closed_form.fit_closed_form("label-propagation", {}, GRAPH, SPLIT, BALANCED)[0]
    assert one.model.teleport == fit_propagation(GRAPH, SPLIT).teleport
    assert one.history == closed_form.fit_closed_form("label-propagation", {}, GRAPH, SPLIT, PLAIN)[0].history


@pytest.mark.parametrize("bad", ["equal", {}, {"a": 0.0}, {"a": True}, {"a": float("nan")}, {3: 1.0}, 2])
def test_bad_settings_are_named(bad: Any) -> None:
    with pytest.raises(InputError, match=r"class_weight=.*balanced"):
        TrainConfig(class_weight=bad)


def test_settings_survive_toml() -> None:
    for given in ("balanced", {"0": 2.0, "a b": 1.5}):
        config = TrainConfig(class_weight=given)
        assert config_from(read_toml(write_toml(config_to(config)), "here")) == config


def test_what_cannot_be_meant_is_told() -> None:
    with pytest.raises(InputError, match="class_weight=9: no class is called so; there are a, b, c"):
        fit(small_model(), GRAPH, SPLIT, replace(PLAIN, class_weight={"9": 2.0}))
    with pytest.raises(InputError, match="no training node has a weight above 0"):
        fit(small_model(), GRAPH.changed(label_weight=torch.zeros(NODES)), SPLIT, PLAIN)
    whole = whole_graph(small_model(), GRAPH, PLAIN)

    def own(epoch: int) -> list[Batch]:
        return [Batch(whole.x, whole.graph, whole.labels[SPLIT.train], SPLIT.train)]

    with pytest.raises(InputError, match="carry weights themselves"):
        fit(small_model(), GRAPH, SPLIT, BALANCED, batches=own)
