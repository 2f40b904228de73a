import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blocks import QUICK, Blocks, blocks
from conjoint import CATClassifier, NodeGraph
from conjoint.data import from_any
from conjoint.errors import InputError
from conjoint.estimator import classifier
from conjoint.estimator.labels import hold_out
from conjoint.nn import zoo
from conjoint.nn.interventions import FeatureSimilarity
from conjoint.training import TrainConfig, fit


@pytest.fixture(scope="module")
def data() -> Blocks:
    return blocks()


@pytest.fixture(scope="module")
def fitted(data: Blocks) -> CATClassifier:
    return CATClassifier(intervention="mf", **QUICK).fit(data.x, data.y, graph=data.graph)


def test_the_graph_tells_what_features_do_not(data: Blocks, fitted: CATClassifier) -> None:
    hidden = data.y == -1
    with_graph = (fitted.transduction_ == data.truth)[hidden].mean()
    alone = CATClassifier(intervention="mf", **QUICK).fit(data.x, data.y)
    assert with_graph > 0.85
    assert with_graph > (alone.transduction_ == data.truth)[hidden].mean() + 0.1


def test_attributes(data: Blocks, fitted: CATClassifier) -> None:
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.embedding_.shape == (90, QUICK["hidden"] * QUICK["heads"])
    assert fitted.n_features_in_ == 6
    assert fitted.n_iter_ == len(fitted.history_) <= QUICK["epochs"]
    assert np.array_equal(fitted.predict(data.x), fitted.transduction_)
    assert np.array_equal(fitted.predict_proba(data.x), fitted.label_distributions_)
    assert np.array_equal(fitted.transform(data.x), fitted.embedding_)
    assert fitted.score(data.x, data.truth) == (fitted.transduction_ == data.truth).mean()
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1.0, rtol=1e-6)  # float32


def test_it_is_the_training_function_and_nothing_else(data: Blocks) -> None:
    """The same network trained by hand ends with the same bits."""
    settings = {"hidden": 4, "heads": 2, "dropout": 0.2}
    network = zoo.build("cat-i-mf", features=6, classes=3, num_nodes=90, seed=0, **settings)
    graph = from_any(data.graph, x=data.x, y=data.y)
    config = TrainConfig(epochs=30, lr=0.05, seed=0, row_normalise="never")
    fit(network, graph, hold_out(data.y, 0.2, 0), config)
    alone = CATClassifier(intervention="mf", validation_fraction=0.2, **QUICK)
    made = alone.fit(data.x, data.y, graph=data.graph)
    assert made.estimate_ is None  # the validation labels have chosen the epoch
    for name, value in network.state_dict().items():
        assert torch.equal(value, made.network_.state_dict()[name]), name


@pytest.mark.parametrize("own", [False, True])
def test_a_named_network_learns_from_every_label(data: Blocks, own: bool) -> None:
    """A label that counts more moves the network, also where it judges the first training."""
    intervention: Any = FeatureSimilarity() if own else "mf"
    made = CATClassifier(intervention=intervention, **QUICK)
    plain = made.fit(data.x, data.y, np.ones(90), graph=data.graph)
    assert plain.estimate_ is not None and 0.0 <= plain.estimate_["accuracy"] <= 1.0
    before, history = plain.label_distributions_, plain.history_
    assert plain.n_iter_ == len(history) == 30 and "val_loss" in history[0]
    unmoved = 0
    for node in np.flatnonzero(data.y >= 0):
        weight = np.ones(90)
        weight[node] = 9.0
        found = clone(made).fit(data.x, data.y, weight, graph=data.graph)
        assert not np.array_equal(found.label_distributions_, before)
        unmoved += found.history_ == history
    assert unmoved == 4  # of fifteen labels four judge


def test_a_share_that_is_held_out_does_not_train(data: Blocks) -> None:
    """Of an ensemble neither, where it is asked for."""
    ensemble: dict[str, Any] = {"trials": 2, "epochs": 3, "random_state": 0}
    made = CATClassifier(**ensemble, validation_fraction=0.4).fit(data.x, data.y, graph=data.graph)
    assert made.portfolio_ is not None and made.portfolio_.labels == 9 and made.estimate_ is not None


def test_nothing_given_is_an_ensemble_that_learns_from_every_label(data: Blocks) -> None:
    made = CATClassifier(random_state=0, trials=20, epochs=40).fit(data.x, data.y, graph=data.graph)
    portfolio = made.portfolio_
    assert made.model_ == "ensemble" and made.choice_ is None and portfolio is not None
    assert portfolio.folds == 3 and portfolio.labels == (data.y >= 0).sum()
    assert len(portfolio.trials) <= 20 and sum(one["weight"] for one in portfolio.members) > 0.99
    hidden = data.y == -1
    assert (made.transduction_ == data.truth)[hidden].mean() > 0.8
    answers = made.predict_proba(np.concatenate([data.x[:3], data.x[:3] + 0.2]))
    assert np.array_equal(answers[:3], made.label_distributions_[:3]) and np.isfinite(answers).all()
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 (our own bytes)
    assert np.array_equal(again.predict_proba(data.x + 0.2), made.predict_proba(data.x + 0.2))


@pytest.mark.parametrize(
    ("parameters", "model"),
    [
        ({"model": "gcn"}, "gcn"),
        ({"model": "appnp", "settings": {"alpha": 0.2}}, "appnp"),
        ({"model": "gated-trust"}, "gated-trust"),
        ({"model": "gat-klap", "settings": {"dim": 4}}, "gat-klap"),
        ({"model": "cat-s-mf", "heads": 2}, "cat-s-mf"),
        ({"intervention": "fs+spectral", "strategy": "explicit"}, "cat-e-fs+spectral"),
        ({"heads": 2}, "cat-i-mf"),  # heads ask for attention
    ],
)
def test_every_model_is_reachable(data: Blocks, parameters: dict[str, Any], model: str) -> None:
    made = CATClassifier(epochs=5, train={"clip": 1.0}, random_state=0, **parameters).fit(
        data.x, data.y, graph=data.graph
    )
    assert (made.model_, made.choice_, made.n_iter_) == (model, None, 5)
    assert np.array_equal(made.predict(data.x), made.transduction_)
    if model == "gat-klap":
        with pytest.raises(InputError, match="embeddings of its training graph"):
            made.predict(data.x + 0.1)
    else:
        found = made.predict_proba(data.x[:4] + 0.1)
        assert found.shape == (4, 3) and np.isfinite(found).all()
    if model in ("gcn", "appnp"):
        with pytest.raises(InputError, match="no attention"):
            _ = made.attention_


def test_validation_nodes_can_be_named(data: Blocks) -> None:
    labelled = np.flatnonzero(data.y >= 0)
    mask = np.zeros(90, dtype=bool)
    mask[labelled[::3]] = True
    some = CATClassifier(intervention="mf", **QUICK | {"epochs": 4})
    by_mask = some.fit(data.x, data.y, graph=data.graph, validation=mask).label_distributions_
    by_index = some.fit(data.x, data.y, graph=data.graph, validation=labelled[::3]).label_distributions_
    assert np.array_equal(by_mask, by_index)
    assert not np.array_equal(by_mask, some.fit(data.x, data.y, graph=data.graph).label_distributions_)


def test_same_seed_same_bits_and_no_global_state(data: Blocks, fitted: CATClassifier) -> None:
    before, torch_before = pickle.dumps(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
    again = clone(fitted).fit(data.x, data.y, graph=data.graph)
    again.predict_proba(data.x + 0.1)
    assert np.array_equal(again.label_distributions_, fitted.label_distributions_)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)
    other = clone(fitted).set_params(random_state=1).fit(data.x, data.y, graph=data.graph)
    assert not np.array_equal(other.label_distributions_, fitted.label_distributions_)


@pytest.mark.parametrize("least", [0.5, 2.0])  # many non-zeros, kept dense inside; few, kept sparse
def test_sparse_and_dense_features_agree(data: Blocks, least: float) -> None:
    x = np.where(data.x > least, data.x, 0.0)
    dense = CATClassifier(intervention="mf", **QUICK).fit(x, data.y, graph=data.graph)
    sparse = CATClassifier(intervention="mf", **QUICK).fit(sp.csr_matrix(x), data.y, graph=data.graph)
    assert np.array_equal(dense.label_distributions_, sparse.label_distributions_)
    for new in (x[:5], x[:5] * 3.0):
        given = (new, sp.csr_array(new), sp.coo_matrix(new))
        answers = [one.predict_proba(form) for one in (dense, sparse) for form in given]
        assert all(np.array_equal(answer, answers[0]) for answer in answers)


def test_word_counts_are_divided_by_their_sums(data: Blocks) -> None:
    """Counts, and the same counts doubled, are one and the same input, unless told otherwise."""
    counts = np.where(data.x > 2.0, np.round(data.x), 0.0)
    once, twice = (
        CATClassifier(intervention="mf", **QUICK).fit(k * counts, data.y, graph=data.graph) for k in (1, 2)
    )
    assert np.array_equal(once.label_distributions_, twice.label_distributions_)
    raw, raw_twice = (
        CATClassifier(intervention="mf", row_normalise="never", **QUICK).fit(
            k * counts, data.y, graph=data.graph
        )
        for k in (1, 2)
    )
    assert not np.array_equal(raw.label_distributions_, raw_twice.label_distributions_)


def test_weights_of_edges_count(data: Blocks, fitted: CATClassifier) -> None:
    same_class = data.truth[:, None] == data.truth[None, :]
    loud = sp.csr_array(data.graph.multiply(np.where(same_class, 9.0, 0.1)))
    weighted = CATClassifier(intervention="mf", **QUICK).fit(data.x, data.y, graph=loud)
    table = weighted.attention_
    same = data.truth[table.src] == data.truth[table.dst]
    plain = fitted.attention_
    plain_same = data.truth[plain.src] == data.truth[plain.dst]
    assert table.conjoint[~same].mean() < 0.2 * plain.conjoint[~plain_same].mean()


def test_attention_table(data: Blocks, fitted: CATClassifier) -> None:
    table = pd.DataFrame(fitted.attention_._asdict())
    edges = data.graph.nnz + 90  # one self-loop per node
    assert len(table) == edges * (QUICK["heads"] + 1)
    sums = table.groupby(["dst", "layer", "head"])[["feature", "structural", "conjoint"]].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    parts = table[["feature", "structural"]]
    assert (table.conjoint >= parts.min(axis=1) - 1e-6).all()
    assert (table.conjoint <= parts.max(axis=1) + 1e-6).all()
    linked = data.graph + sp.eye_array(90)
    assert (linked.tocsr()[table.src, table.dst] > 0).all()
    alone = CATClassifier(model="gat-self", **QUICK).fit(data.x, data.y, graph=data.graph)
    assert np.isnan(alone.attention_.structural).all()


def test_rows_of_training_keep_their_answers(data: Blocks, fitted: CATClassifier) -> None:
    order = np.random.default_rng(0).permutation(90)[:20]
    assert np.array_equal(fitted.predict_proba(data.x[order]), fitted.label_distributions_[order])
    assert np.array_equal(fitted.predict_proba(data.x, graph=data.graph), fitted.label_distributions_)
    mixed = np.concatenate([data.x[:3], data.x[3:6] + 0.5])
    answers = fitted.predict_proba(mixed)
    assert np.array_equal(answers[:3], fitted.label_distributions_[:3])
    np.testing.assert_allclose(answers[3:], fitted.predict_proba(mixed[3:]), atol=1e-6)


def test_a_graph_between_new_nodes(data: Blocks, fitted: CATClassifier) -> None:
    other = blocks(seed=5)
    with pytest.raises(InputError, match="holds a row per training node"):
        fitted.predict(other.x[:40], graph=other.graph[:40, :40])
    free = CATClassifier(intervention="fs", **QUICK).fit(data.x, data.y, graph=data.graph)
    found = free.predict(other.x, graph=other.graph)
    assert (found == other.truth).mean() > 0.7
    assert (found == other.truth).mean() > (free.predict(other.x) == other.truth).mean()
    assert free.score(other.x, other.truth, graph=other.graph) == (found == other.truth).mean()


def test_score_looks_at_labelled_rows(data: Blocks, fitted: CATClassifier) -> None:
    labelled = data.y >= 0
    expected = (fitted.transduction_ == data.truth)[labelled].mean()
    assert fitted.score(data.x, data.y) == expected
    wrong = fitted.transduction_ != data.truth
    assert fitted.score(data.x, data.truth, sample_weight=wrong.astype(float)) == 0.0
    with pytest.raises(InputError, match="nothing to score"):
        fitted.score(data.x, np.full(90, -1))


def test_names_of_features_classes_and_nodes(data: Blocks) -> None:
    frame = pd.DataFrame(data.x, columns=list("abcdef"), index=[f"node {i}" for i in range(90)])
    names = np.array(["red", "green", "blue"], dtype=object)[data.truth]
    names[data.y == -1] = None
    named = CATClassifier(intervention="mf", **QUICK).set_output(transform="pandas")
    named.fit(frame, names, graph=data.graph)
    assert named.classes_.tolist() == ["blue", "green", "red"]
    assert named.feature_names_in_.tolist() == list("abcdef")
    assert set(named.attention_.src) == set(frame.index)
    made = named.transform(frame)
    assert made.index.tolist() == frame.index.tolist()
    assert made.columns[0] == "catclassifier0"
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[list("fedcba")])


def test_pipeline_and_grid_search(data: Blocks) -> None:
    pipe = make_pipeline(StandardScaler(), CATClassifier(intervention="mf", **QUICK))
    pipe.fit(data.x, data.y, catclassifier__graph=data.graph)
    assert np.array_equal(pipe.predict(data.x), pipe[-1].transduction_)
    assert np.array_equal(pipe.predict(data.x, graph=data.graph), pipe[-1].transduction_)

    small: dict[str, Any] = QUICK | {"epochs": 4}
    grid = {"heads": np.array([1, 2]), "strategy": ["explicit"]}
    search = GridSearchCV(CATClassifier(intervention="mf", **small), grid, cv=2, error_score="raise")
    assert search.fit(data.x, data.truth).best_params_["strategy"] == "explicit"
    assert search.fit(data.x, data.truth, graph=NodeGraph(data.graph)).best_estimator_.attention_
    with pytest.raises(InputError, match="NodeGraph"):
        search.fit(data.x, data.truth, graph=data.graph)


def test_metadata_routing(data: Blocks) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        inside = CATClassifier(**QUICK | {"epochs": 4, "intervention": "fs"})
        inside = inside.set_fit_request(graph=True).set_score_request(graph=True)
        search = GridSearchCV(inside, {"heads": [1]}, cv=2, error_score="raise")
        search.fit(data.x, data.truth, graph=NodeGraph(data.graph))
    assert 0 <= search.best_score_ <= 1


def test_pickle(data: Blocks, fitted: CATClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 (our own bytes)
    new = data.x + 0.1
    assert np.array_equal(again.predict_proba(new), fitted.predict_proba(new))


def test_later_changes_to_x_do_not_reach_the_estimator(data: Blocks, fitted: CATClassifier) -> None:
    x = data.x.astype(np.float32)
    own = CATClassifier(intervention="mf", **QUICK).fit(x, data.y, graph=data.graph)
    x[:] = 0
    assert np.array_equal(own.predict_proba(data.x), fitted.label_distributions_)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"heads": "8"}, "heads='8'"),
        ({"num_layers": 1}, "num_layers=1"),
        ({"dropout": "half"}, "dropout='half'"),
        ({"settings": {"steps": 3}}, "steps=3: cat-i-mf has no such setting"),
        ({"train": {"speed": 3}}, "'speed' is not a training setting"),
        ({"model": "gcn"}, "give one of them"),
        ({"random_state": 2**70}, "Seed must be"),
        ({"dropout": 1.0}, "dropout"),
        ({"strategy": "both"}, "strategy"),
        ({"intervention": "magic"}, "intervention 'magic' is not known"),
        ({"validation_fraction": "half"}, "validation_fraction='half'"),
        ({"row_normalise": "no"}, "row_normalise='no'"),
        ({"n_neighbors": 0}, "n_neighbors=0"),
    ],
)
def test_bad_parameters_are_named(data: Blocks, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CATClassifier(**QUICK | {"intervention": "mf"} | settings).fit(data.x, data.y)


def test_weights_of_classes_and_rows(data: Blocks) -> None:
    """Where a class, or its rows, count a hundred times as much, it is predicted more often."""
    quick = QUICK | {"intervention": "fs"}
    plain = CATClassifier(**quick).fit(data.x, data.y, graph=data.graph)
    usual = (plain.transduction_ == 0).sum()
    for given in ({0: 100.0}, {np.int64(0): 100.0, 1: 1}, {0.0: 100}):
        found = CATClassifier(**quick, class_weight=given).fit(data.x, data.y, graph=data.graph)
        assert (found.transduction_ == 0).sum() > usual
    by_row = CATClassifier(**quick).fit(data.x, data.y, np.where(data.y == 0, 100.0, 1.0), graph=data.graph)
    assert np.allclose(by_row.label_distributions_, found.label_distributions_, atol=1e-4)
    same = CATClassifier(**quick).fit(data.x, data.y, sample_weight=[2.0] * 90, graph=data.graph)
    assert np.allclose(same.label_distributions_, plain.label_distributions_, atol=1e-4)
    with pytest.raises(InputError, match="class_weight=7: no class is called so; there are 0, 1, 2"):
        CATClassifier(**quick, class_weight={7: 1.0}).fit(data.x, data.y, graph=data.graph)
    with pytest.raises(InputError, match="sample_weight: a weight is negative"):
        CATClassifier(**quick).fit(data.x, data.y, -np.ones(90), graph=data.graph)


def test_progress_and_verbose(data: Blocks, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Any] = []

    def stop(row: dict[str, Any]) -> bool:
        rows.append(row)
        return len(rows) == 3

    alone = CATClassifier(**QUICK, model="gat", verbose=2, validation_fraction=0.2)
    found = alone.fit(data.x, data.y, graph=data.graph, progress=stop)
    assert found.history_ == rows and found.n_iter_ == 3
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "epoch 1",
        "epoch 2",
        "epoch 3",
    ]


def test_the_example_in_the_docstring() -> None:
    import doctest

    results = doctest.testmod(classifier)
    assert results.attempted > 0 and results.failed == 0
