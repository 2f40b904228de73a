import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from blocks import QUICK, Blocks, blocks
from conjoint import CATClassifier, CATClusterer
from conjoint.errors import InputError
from conjoint.estimator.clusterer import _surer_part, first_clusters
from conjoint.estimator.graphs import read_graph
from conjoint.graph.sparse import pack_features

MF = QUICK | {"intervention": "mf"}


@pytest.fixture(scope="module")
def data() -> Blocks:
    return blocks()


def test_communities_are_found_without_labels(data: Blocks) -> None:
    found = CATClusterer(n_clusters=3, **MF).fit(data.x, graph=data.graph)
    assert adjusted_rand_score(data.truth, found.labels_) > 0.6
    assert np.unique(found.labels_).tolist() == found.classes_.tolist() == [0, 1, 2]
    assert np.array_equal(found.predict(data.x), found.labels_)
    assert found.transform(data.x).shape == (90, QUICK["hidden"] * QUICK["heads"])
    again = clone(found).fit_predict(data.x, graph=data.graph)
    assert np.array_equal(again, found.labels_)
    none = clone(found).fit(data.x, np.full(90, -1), graph=data.graph)  # no label is as good as no y
    assert np.array_equal(none.labels_, found.labels_)


def test_with_labels_it_is_the_classifier(data: Blocks) -> None:
    names = np.array(["a", "b", "c"])[data.truth]
    names[data.y == -1] = ""
    found = CATClusterer(n_clusters=50, **MF).fit_predict(data.x, names, graph=data.graph)
    same = CATClassifier(**MF).fit(data.x, names, graph=data.graph)
    assert np.array_equal(found, same.transduction_)
    assert (found == np.array(["a", "b", "c"])[data.truth]).mean() > 0.85


def test_new_nodes_join_a_cluster(data: Blocks) -> None:
    found = CATClusterer(n_clusters=3, **MF).fit(data.x, graph=data.graph)
    assert set(found.predict(data.x + 0.3)) <= set(found.labels_)


def test_an_ensemble_clusters_too(data: Blocks) -> None:
    found = CATClusterer(n_clusters=3, epochs=60, trials=8, random_state=0).fit(data.x, graph=data.graph)
    assert found.model_ == "ensemble" and found.portfolio_ is not None
    assert adjusted_rand_score(data.truth, found.labels_) > 0.6
    with pytest.raises(InputError, match="no row has a label"):
        found.fit(data.x, graph=data.graph, validation=[0, 1])


def test_first_clusters_label_the_surer_half(data: Blocks) -> None:
    graph = read_graph(data.graph, pack_features(data.x, "auto"))
    codes = first_clusters(graph, 3, 5, "never", 0)
    sure = codes >= 0
    assert 43 <= sure.sum() <= 47
    assert adjusted_rand_score(data.truth[sure], codes[sure]) > 0.6


def test_the_surer_part_by_hand() -> None:
    clusters = np.array([4, 4, 4, 4, 9])
    codes = _surer_part(clusters, np.array([0.1, 0.9, 0.5, 0.2, 0.0], dtype=np.float32))
    assert codes.tolist() == [-1, 0, 0, -1, 1]


def test_equal_rows_make_one_cluster() -> None:
    found = CATClusterer(n_clusters=3, **MF).fit(np.ones((9, 2)))
    assert found.labels_.tolist() == [0] * 9


@pytest.mark.parametrize("count", [0, 91, 2.5, True, "3"])
def test_a_number_of_clusters_that_cannot_be(data: Blocks, count: object) -> None:
    with pytest.raises(InputError, match="n_clusters"):
        CATClusterer(n_clusters=count, **MF).fit(data.x)  # type: ignore[arg-type]
