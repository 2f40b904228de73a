"""Models without epochs: against scikit-learn's own, and against loops over dense matrices."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import oracle
from conjoint.errors import InputError
from conjoint.graph.adjacency import adjacency
from conjoint.graph.graph import Graph
from conjoint.graph.proximity import reducing_basis
from conjoint.graph.sparse import to_csr
from conjoint.graph.splits import Split
from conjoint.nn.simple import ABSENT, BoostedTrees, labels_around
from conjoint.nn.zoo import build
from conjoint.training import TrainConfig, closed_form
from conjoint.training.closed_form import (
    BOOSTING,
    fit_boosting,
    fit_closed_form,
    fit_linear,
    fit_propagation,
    log_loss,
)
from graphs import KITE
from small_training import CLASSES, NODES, small_data, small_split
from topics import topic_graph

Array = npt.NDArray[Any]
GRAPH, SPLIT = small_data(), small_split()
TRAIN, VAL = SPLIT.train.numpy(), SPLIT.val.numpy()
Y = GRAPH.y.numpy()
MASK = oracle.neighbourhood(GRAPH.edge_index.numpy(), NODES)
MEAN = MASK / MASK.sum(axis=1, keepdims=True)


def probabilities(model: Any, graph: Graph) -> Array:
    with torch.no_grad():
        return model.probabilities(graph.x, graph.adjacency).numpy()


@pytest.mark.parametrize("hops", ["0", "2", "012"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_logistic_regression_is_scikit_learns(
    hops: str, sparse: bool, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_form, "STRENGTHS", (strength,))
    graph = GRAPH.changed(given_x=to_csr(GRAPH.x.numpy())) if sparse else GRAPH
    found = probabilities(fit_linear(graph, SPLIT, hops), graph)
    x = GRAPH.x.double().numpy()
    x = x if sparse else (x - x.mean(axis=0)) / x.std(axis=0)  # sparse features are read as they are
    table = np.concatenate([np.linalg.matrix_power(MEAN, int(k)) @ x for k in hops], axis=1)
    theirs = LogisticRegression(C=strength, max_iter=5000, tol=1e-8).fit(table[TRAIN], Y[TRAIN])
    assert np.abs(found - theirs.predict_proba(table)).max() < 2e-3


def test_validation_nodes_choose_the_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    def missed(strengths: tuple[float, ...]) -> float:
        monkeypatch.setattr(closed_form, "STRENGTHS", strengths)
        return log_loss(np.log(probabilities(fit_linear(GRAPH, SPLIT, "0"), GRAPH)[VAL]), Y[VAL])

    every = (0.01, 0.1, 1.0, 10.0, 100.0)
    assert missed(every) == pytest.approx(min(missed((one,)) for one in every), abs=2e-3)


def theirs_and_ours(graph: Graph, split: Split, rank: int = 64) -> tuple[Array, Array]:
    """Probabilities of all nodes by scikit-learn's trees, at the rounds that we stopped at, and by ours."""
    model = fit_boosting(graph, split, 0, rank)
    train = split.train.numpy()
    with torch.no_grad():
        table = model.columns(graph.x, graph.adjacency).double().numpy()
    theirs = HistGradientBoostingClassifier(
        max_iter=model.rounds, early_stopping=False, random_state=0, **BOOSTING
    )
    theirs.fit(table[train], graph.y.numpy()[train])
    every = np.zeros((graph.num_nodes, graph.num_classes))
    every[:, theirs.classes_] = theirs.predict_proba(table)
    return every, probabilities(model, graph)


def many_labels(graph: Graph) -> Split:
    order = torch.from_numpy(np.random.default_rng(0).permutation(graph.num_nodes))
    return Split(order[:150].sort().values, order[150:200].sort().values, "many", 0)


TOPICS = topic_graph(240, words=30)


@pytest.mark.parametrize("rank", [8, 64])  # reduced features, or all of them
def test_trees_are_scikit_learns(rank: int) -> None:
    theirs, ours = theirs_and_ours(TOPICS, many_labels(TOPICS), rank)
    assert np.abs(theirs - ours).max() < 1e-5
    assert (ours.argmax(1) == TOPICS.y.numpy()).mean() > 0.9


def test_few_and_many_nodes_go_down_the_trees_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    model, every = fit_boosting(TOPICS, many_labels(TOPICS), 0), slice(None)
    found = []
    for most in (0, 2**40):
        monkeypatch.setattr("conjoint.nn.simple.AT_ONCE", most)
        found.append(model.probabilities(TOPICS.x, TOPICS.adjacency, every))
    assert torch.equal(*found)
    some = model.probabilities(TOPICS.x, TOPICS.adjacency, slice(None, None, 7))
    assert torch.equal(some, found[0][::7])


def test_trees_for_two_classes() -> None:
    graph = TOPICS.changed(y=(TOPICS.y == 1).long(), class_names=["no", "yes"])
    theirs, ours = theirs_and_ours(graph, many_labels(graph))
    assert ours.shape == (240, 2) and np.abs(theirs - ours).max() < 1e-5


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_that_no_training_node_has_gets_next_to_nothing(absent: int) -> None:
    split = many_labels(TOPICS)
    train = split.train[TOPICS.y[split.train] != absent]
    theirs, ours = theirs_and_ours(TOPICS, replace(split, train=train))
    assert ours[:, absent].max() < np.exp(ABSENT / 2)
    assert np.abs(theirs - ours).max() < 1e-5  # scikit-learn has two classes then, and one tree a round


def test_more_classes_than_training_nodes_have() -> None:
    graph = TOPICS.changed(y=TOPICS.y + 1, class_names=list("abcde"))
    theirs, ours = theirs_and_ours(graph, many_labels(graph))
    assert ours.shape == (240, 5) and np.abs(theirs - ours).max() < 1e-5


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("only", [0, 1])
def test_training_nodes_of_one_class(classes: int, only: int) -> None:
    split = many_labels(TOPICS)
    graph = TOPICS.changed(y=TOPICS.y.clamp(max=classes - 1), class_names=list("abc")[:classes])
    train = split.train[graph.y[split.train] == only]
    ours = probabilities(fit_boosting(graph, replace(split, train=train), 0), graph)
    assert ours.shape == (240, classes) and (ours[:, only] > 0.99).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", -1), ("right", 10**9), ("column", 10**6), ("column", -1), ("root", 10**9), ("left", "loop")],
)
def test_damaged_trees_are_refused(name: str, value: Any) -> None:
    model = fit_boosting(TOPICS, many_labels(TOPICS), 0)
    inner = int((model.left != torch.arange(model.left.numel())).nonzero()[0])
    if value == "loop":  # a child before its parent: the walk would never end
        model.right[inner], model.left[inner] = 0, 0
    else:
        getattr(model, name).view(-1)[inner if name != "root" else 0] = value
    with pytest.raises(InputError, match="not those of a trained model; restore the run folder"):
        model(TOPICS.x, TOPICS.adjacency)


def test_label_propagation_is_personalised_pagerank() -> None:
    model = fit_propagation(GRAPH, SPLIT)
    degree = MASK.sum(axis=1)
    step = MASK / np.sqrt(np.outer(degree, degree))
    start = np.zeros((NODES, CLASSES))
    start[TRAIN, Y[TRAIN]] = 1.0
    now = start
    for _ in range(model.steps):
        now = (1.0 - model.teleport) * step @ now + model.teleport * start
    prior = np.bincount(Y[TRAIN], minlength=CLASSES) / len(TRAIN)
    expected = (now + 1e-4 * prior) / (now + 1e-4 * prior).sum(axis=1, keepdims=True)
    assert np.allclose(probabilities(model, GRAPH), expected, atol=1e-4)


def test_label_propagation_ignores_features_and_answers_where_no_label_arrives() -> None:
    lonely = GRAPH.changed(edges=torch.empty(2, 0, dtype=torch.int64))
    found = probabilities(fit_propagation(lonely, SPLIT), lonely)
    assert (found[TRAIN].argmax(1) == Y[TRAIN]).all()
    prior = np.bincount(Y[TRAIN], minlength=CLASSES) / len(TRAIN)
    assert np.allclose(found[VAL], prior, atol=1e-3)


@pytest.mark.parametrize("name", ["logistic", "label-propagation", "boosting"])
def test_they_come_as_any_training_does(name: str) -> None:
    settings = {"hops": "02"} if name == "logistic" else {}
    fitted, kept = fit_closed_form(name, settings, TOPICS, many_labels(TOPICS), TrainConfig(seed=3))
    row = fitted.metrics
    assert fitted.best_epoch == len(fitted.history) == 1 and fitted.config.seed == 3
    assert row["val_accuracy"] > 0.6 and row["val_loss"] > 0.0
    assert set(kept) == {"logistic": {"hops"}, "label-propagation": {"teleport", "steps"}}.get(
        name, {"nodes", "rounds", "rank", "labelled"}
    )
    assert not fitted.model.training


@pytest.mark.parametrize("hops", ["", "x", "00", "-1"])
def test_hops_are_different_digits(hops: str) -> None:
    with pytest.raises(InputError, match="write different digits"):
        fit_linear(GRAPH, SPLIT, hops)


def test_labels_around_a_node_leave_its_own_out() -> None:
    """Against walks over dense matrices: the share of each class one and two steps away."""
    edges = oracle.neighbourhood(GRAPH.edge_index.numpy(), NODES) * (1 - np.eye(NODES))
    walk = edges / np.maximum(1, edges.sum(axis=1, keepdims=True))
    y = np.zeros((NODES, CLASSES))
    y[TRAIN, Y[TRAIN]] = 1.0
    near, two = walk @ y, walk @ walk
    far = (two - np.diag(np.diag(two))) @ y
    shares = [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-6) for part in (near, far)]
    expected = np.concatenate([*shares, near.sum(axis=1, keepdims=True)], axis=1)
    found = labels_around(GRAPH.adjacency, torch.from_numpy(y)).numpy()
    assert np.abs(found - expected).max() < 1e-9 and expected[:, :CLASSES].max() > 0.4


def test_a_training_node_is_not_judged_by_its_own_label() -> None:
    """Another label of one node changes what is read of the others alone."""
    model = fit_boosting(TOPICS, many_labels(TOPICS), 0)
    node = int(many_labels(TOPICS).train[0])
    before = model.columns(TOPICS.x, TOPICS.adjacency)
    model.labels[node] = (model.labels[node] + 1) % TOPICS.num_classes
    after = model.columns(TOPICS.x, TOPICS.adjacency)
    changed = (before - after).abs().amax(dim=1) > 1e-6
    assert not changed[node] and int(changed.sum()) > 0


def test_a_nodes_own_label_is_left_out_of_those_around_it() -> None:
    """Also where a neighbour has no other neighbour, so that every second step leads back."""
    graph, y = adjacency(*KITE), torch.eye(3)[torch.tensor([0, 1, 2, 1, 0])]
    before = labels_around(graph, y)
    for node in range(5):
        for label in range(3):
            changed = y.clone()
            changed[node] = torch.eye(3)[label]
            assert torch.allclose(labels_around(graph, changed)[node], before[node], atol=1e-6)


def test_validation_nodes_choose_the_number_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    split = many_labels(TOPICS)
    monkeypatch.setattr(closed_form, "ROUNDS", 12)
    monkeypatch.setattr(closed_form, "_as_model", lambda maker, rounds, *_: (maker, rounds))
    maker, rounds = cast(Any, fit_boosting(TOPICS, split, 0))
    blank = BoostedTrees(TOPICS.num_features, TOPICS.num_classes, labelled=TOPICS.num_nodes)
    blank.labels[split.train] = TOPICS.y[split.train]
    if blank.basis.numel():
        blank.basis.copy_(torch.from_numpy(reducing_basis(TOPICS.x, rank=64)))
    with torch.no_grad():
        table = blank.columns(TOPICS.x, TOPICS.adjacency).double().numpy()
    stages = maker.staged_predict_proba(table[split.val.numpy()])
    losses = [log_loss(np.log(shares), TOPICS.y[split.val].numpy()) for shares in stages]
    assert rounds == 1 + int(np.argmin(losses)) and len(losses) == 12


def test_nothing_of_a_closed_form_is_left_to_gradients() -> None:
    for name in ("boosting", "label-propagation"):
        model = build(name, features=3, classes=2, num_nodes=5)
        assert not any(part.requires_grad for part in model.parameters())


def test_dense_columns_are_centred_and_scaled() -> None:
    x = GRAPH.x.double().clone()
    x[:, 0], x[:, 1] = 3.0, 5.0 * x[:, 1] + 2.0  # the first says nothing
    model = fit_linear(GRAPH.changed(given_x=x.float()), SPLIT, "0")
    assert torch.allclose(model.shift.double(), x.mean(0), atol=1e-5)
    expected = torch.where(x.std(0, correction=0) > 1e-6, 1.0 / x.std(0, correction=0), 1.0)
    assert torch.allclose(model.scale.double(), expected, rtol=1e-4)


def test_a_class_without_training_nodes_is_unlikely_but_possible() -> None:
    known = SPLIT.train[GRAPH.y[SPLIT.train] != 2]
    made = fit_propagation(GRAPH, replace(SPLIT, train=known))
    share = np.bincount(GRAPH.y[known].numpy(), minlength=3) + 1e-3
    assert torch.allclose(made.prior.double(), torch.from_numpy(np.log(share)), atol=1e-5)


def test_validation_nodes_without_weight_count_alike() -> None:
    weight = torch.ones(NODES)
    config = TrainConfig(row_normalise="never")
    assert closed_form._weights(GRAPH, SPLIT, config) == (None, None)
    weight[SPLIT.val] = 0.0
    train, val = closed_form._weights(GRAPH.changed(label_weight=weight), SPLIT, config)
    assert train is not None and train.tolist() == [1.0] * len(TRAIN) and val is None
    weight[SPLIT.val[0]] = 0.5
    train, val = closed_form._weights(GRAPH.changed(label_weight=weight), SPLIT, config)
    assert val is not None and val.tolist() == [0.5] + [0.0] * (len(VAL) - 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_training_node_is_enough_for_trees(classes: int) -> None:
    graph = TOPICS.changed(y=TOPICS.y.clamp(max=classes - 1), class_names=list("abc")[:classes])
    split = many_labels(graph)
    ours = probabilities(fit_boosting(graph, replace(split, train=split.train[:1]), 0), graph)
    assert (ours[:, int(graph.y[split.train[0]])] > 0.99).all()


def test_no_more_places_in_trees_are_held_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many nodes that go down the trees, however few columns they have."""
    model, held = fit_boosting(TOPICS, many_labels(TOPICS), 0), list[int]()
    walks, most = model._walks, 20 * model.root.numel()

    def watched(table: torch.Tensor) -> torch.Tensor:
        held.append(len(table) * model.root.numel())
        return walks(table)

    monkeypatch.setattr("conjoint.nn.simple.AT_ONCE", most)
    monkeypatch.setattr(model, "_walks", watched)
    for count in (19, 20, 240):
        model.probabilities(TOPICS.x, TOPICS.adjacency, slice(count))
    assert held == [19 * model.root.numel()]
