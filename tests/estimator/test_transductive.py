"""Cross-validation that hides labels and leaves nodes and edges where they are."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score

from conjoint import CATClassifier, InputError, NodeGraph, Transductive
from topics import topic_graph

GRAPH = topic_graph(120, words=30)
X = np.random.default_rng(0).standard_normal((120, 4)).astype(np.float32)  # only edges tell the topic
Y = np.array(["art", "law", "sea"])[GRAPH.y.numpy()]
A = sp.csr_array((np.ones(GRAPH.num_edges), GRAPH.edge_index.numpy()), shape=(120, 120))
ROWS = np.arange(120)
QUICK: dict[str, Any] = {"model": "gcn", "epochs": 30, "random_state": 0}
CV = StratifiedKFold(3, shuffle=True, random_state=0)


def test_a_fold_is_a_fit_with_hidden_labels() -> None:
    found = cross_val_predict(
        Transductive(CATClassifier(**QUICK), X, A), ROWS, Y, cv=CV, method="predict_proba"
    )
    for train, test in CV.split(ROWS, Y):
        hidden = np.full(120, None, dtype=object)
        hidden[train] = Y[train]
        plain = CATClassifier(**QUICK).fit(X, hidden, graph=A)
        assert np.array_equal(found[test], plain.label_distributions_[test])


def test_edges_of_hidden_nodes_count_which_the_inductive_way_loses() -> None:
    kept = cross_val_score(Transductive(CATClassifier(**QUICK), X, A), ROWS, Y, cv=CV).mean()
    lost = cross_val_score(CATClassifier(**QUICK), X, Y, cv=CV, params={"graph": NodeGraph(A)}).mean()
    assert kept > 0.7 > 0.6 > lost


def test_a_search_tunes_the_inner_estimator() -> None:
    grid = {"estimator__model": ["resmlp", "gcn"]}
    search = GridSearchCV(Transductive(CATClassifier(**QUICK), X, A), grid, cv=CV).fit(ROWS[:, None], Y)
    assert search.best_params_ == {"estimator__model": "gcn"}
    assert search.best_estimator_.estimator_.label_distributions_.shape == (120, 3)
    assert search.predict(ROWS[:5]).tolist() == search.best_estimator_.estimator_.transduction_[:5].tolist()


def test_copies_share_the_graph_but_not_the_estimator() -> None:
    whole = Transductive(CATClassifier(**QUICK), X, A)
    copy = clone(whole)
    assert copy.X is X and copy.graph is A and copy.estimator is not whole.estimator
    assert copy.get_params()["estimator__model"] == "gcn"


def test_rows_and_labels_are_checked() -> None:
    whole = Transductive(CATClassifier(**QUICK), X, A)
    for bad in (X, ROWS + 1, ROWS.astype(float), [-1, 0]):
        with pytest.raises(InputError, match="rows: give numbers of rows of X, from 0 to 119"):
            whole.fit(bad, Y[: len(bad)])
    with pytest.raises(InputError, match="y: 3 labels for 4 rows"):
        whole.fit(ROWS[:4], Y[:3])
