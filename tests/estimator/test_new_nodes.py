"""New nodes, against the whole joint graph computed at once; interventions of one's own."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from blocks import QUICK, blocks
from conjoint import CATClassifier, EdgeScores, MatrixFactorization
from conjoint.errors import InputError
from conjoint.graph.adjacency import adjacency
from conjoint.nn.interventions import EmbeddingSimilarity, FeatureSimilarity
from conjoint.nn.new_nodes import with_new_nodes

QUICKER = QUICK | {"epochs": 4}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        {"intervention": "mf", **QUICK},
        {"intervention": "sc", **QUICK},
        {"intervention": "fs", **QUICK},
        {"model": "gat-self", **QUICK},
        {"model": "spread-zero", "epochs": 20, "random_state": 0},  # needs the whole graph
        {"model": "gcn", "epochs": 20, "random_state": 0},
    ],
)
def test_a_new_node_is_answered_as_part_of_the_joint_graph(
    parameters: dict[str, Any], weighted: bool
) -> None:
    data = blocks()
    known, new = 80, 10
    strength = np.random.default_rng(1).integers(1, 5, data.graph.shape)
    whole = data.graph.multiply(np.minimum(strength, strength.T)) if weighted else data.graph
    whole = sp.csr_array(whole)
    fitted = CATClassifier(**parameters)
    fitted.fit(data.x[:known], data.y[:known], graph=whole[:known, :known])
    found = fitted.predict_proba(data.x[known:], graph=whole[known:])

    # The same by hand: all nodes in one graph, in which old ones do not receive from new ones.
    entries = whole.tocoo()
    kept = (entries.row >= known) | (entries.col < known)
    edges = torch.from_numpy(np.stack([entries.col[kept], entries.row[kept]]).astype(np.int64))
    weight = torch.from_numpy(entries.data[kept]).float() if weighted else None
    after = adjacency(edges, known + new)
    before = adjacency(edges[:, (edges < known).all(dim=0)], known)
    after = after if weight is None else after.with_weights(weight)
    network = with_new_nodes(fitted.network_, before, after, rows="mean").eval()
    with torch.no_grad():
        graph = network.prepare(edges, known + new, weight)
        expected = network(torch.from_numpy(data.x).float(), graph).softmax(dim=1)
    np.testing.assert_allclose(found, expected[known:], atol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(data.x[:known]), expected[:known], atol=1e-5)


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
    named = CATClassifier(intervention="fs", **QUICK).fit(data.x, data.y)
    assert isinstance(named.network_.intervention, FeatureSimilarity)


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_an_own_intervention_is_trained_as_a_named_one_is(strategy: str) -> None:
    data = blocks()
    one, other = (
        CATClassifier(intervention=given, strategy=strategy, **QUICKER).fit(data.x, data.y, graph=data.graph)
        for given in ("fs", FeatureSimilarity())
    )
    assert np.array_equal(one.label_distributions_, other.label_distributions_)
    structural = CATClassifier(intervention=FeatureSimilarity(), strategy="structural", **QUICKER)
    assert structural.fit(data.x, data.y, graph=data.graph).network_.strategy == "structural"


def test_interventions_that_cannot_be_used_are_refused() -> None:
    data = blocks()
    with pytest.raises(InputError, match="score per edge"):
        CATClassifier(intervention=EdgeScores(torch.ones(8))).fit(data.x, data.y)
    with pytest.raises(InputError, match="give one of them"):
        CATClassifier(model="gcn", intervention=FeatureSimilarity()).fit(data.x, data.y)
