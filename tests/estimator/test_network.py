"""New nodes, against the whole joint graph computed at once."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from blocks import QUICK, blocks
from conjoint import CATClassifier, EdgeScores, MatrixFactorization
from conjoint.errors import InputError
from conjoint.estimator.graphs import Edges
from conjoint.estimator.network import make_network, with_new_rows
from conjoint.graph.adjacency import adjacency
from conjoint.nn.interventions import EmbeddingSimilarity, FeatureSimilarity, LowRank


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intervention", ["mf", "sc", "fs", None])
def test_a_new_node_is_answered_as_part_of_the_joint_graph(intervention: str | None, weighted: bool) -> None:
    data = blocks()
    known, new = 80, 10
    strength = np.random.default_rng(1).integers(1, 5, data.graph.shape)
    whole = data.graph.multiply(np.minimum(strength, strength.T)) if weighted else data.graph
    whole = sp.csr_array(whole)
    fitted = CATClassifier(intervention=intervention, **QUICK)
    fitted.fit(data.x[:known], data.y[:known], graph=whole[:known, :known])
    found = fitted.predict_proba(data.x[known:], graph=whole[known:])

    # The same by hand: everybody in one graph, in which old nodes do not hear new ones.
    entries = whole.tocoo()
    heard = (entries.row >= known) | (entries.col < known)
    edges = torch.from_numpy(np.stack([entries.col[heard], entries.row[heard]]).astype(np.int64))
    graph = adjacency(edges, known + new)
    if weighted:
        graph = graph.with_weights(torch.from_numpy(entries.data[heard]).float())
    into_new = whole[known:, :known].tocoo()
    links = Edges(into_new.col.astype(np.int64), into_new.row.astype(np.int64), into_new.data)
    network = with_new_rows(fitted.network_, links, new).eval()
    with torch.no_grad():
        expected = network(torch.from_numpy(data.x).float(), graph).softmax(dim=1)
    np.testing.assert_allclose(found, expected[known:], atol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(data.x[:known]), expected[:known], atol=1e-5)


def test_new_rows_are_the_weighted_mean_of_their_neighbours() -> None:
    network = make_network(3, 2, 4, 0, "mf", hidden_channels=2)
    links = Edges(np.array([0, 3, 1]), np.array([0, 0, 2]), np.array([1.0, 3.0, 5.0]))
    grown = with_new_rows(network, links, 3).intervention
    assert isinstance(grown, LowRank) and isinstance(network.intervention, LowRank)
    rows = network.intervention.factors
    expected = torch.stack([(rows[0] + 3 * rows[3]) / 4, torch.zeros(2), rows[1]])
    torch.testing.assert_close(grown.factors, torch.cat([rows, expected]))
    assert rows.size(0) == 4  # the trained network itself stays as it was


def test_fixed_vectors_grow_too() -> None:
    data = blocks()
    vectors = torch.from_numpy(np.eye(3)[data.truth]).float()
    fitted = CATClassifier(intervention=EmbeddingSimilarity(vectors), **QUICK)
    fitted.fit(data.x, data.y, graph=data.graph)
    found = fitted.predict_proba(data.x[:4] + 0.01)
    assert np.isfinite(found).all() and found.shape == (4, 3)


def test_an_own_intervention_is_copied_and_never_trained_itself() -> None:
    data = blocks()
    own = MatrixFactorization(90, 2)
    before = own.factors.detach().clone()
    fitted = CATClassifier(intervention=own, **QUICK).fit(data.x, data.y, graph=data.graph)
    assert torch.equal(own.factors, before)
    trained = fitted.network_.intervention
    assert isinstance(trained, MatrixFactorization)
    assert not torch.equal(trained.factors, before)
    assert isinstance(
        CATClassifier(intervention="fs", **QUICK).fit(data.x, data.y).network_.intervention, FeatureSimilarity
    )


def test_scores_of_one_edge_list_are_refused() -> None:
    with pytest.raises(InputError, match="score per edge"):
        make_network(3, 2, 4, 0, EdgeScores(torch.ones(8)), hidden_channels=2)
    with pytest.raises(InputError, match="intervention='magic'"):
        make_network(3, 2, 4, 0, "magic", hidden_channels=2)
