"""Interventions against their dense definitions."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

import oracle
from conjoint import (
    CATConv,
    Constant,
    EdgeScores,
    FeatureSimilarity,
    InputError,
    Intervention,
    MatrixFactorization,
    SelfExpression,
    adjacency,
)
from conjoint.graph.adjacency import Adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.sparse import to_csr
from conjoint.nn.interventions import SpectralSimilarity
from graphs import ALL, KITE, random_features, random_graph

FACTORS = {"mf": MatrixFactorization, "sc": SelfExpression}
LOSS = {"mf": (oracle.mf_loss, oracle.mf_gradient), "sc": (oracle.sc_loss, oracle.sc_gradient)}


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", [*ALL, "random", "directed"])
def test_penalty_and_gradient_equal_the_frobenius_definition(kind: str, name: str) -> None:
    edges, n = ALL[name] if name in ALL else random_graph(40, 150, undirected=name == "random")
    intervention = FACTORS[kind](n, 3).double()
    adj = adjacency(edges, n)
    penalty = intervention.penalty(adj)
    penalty.backward()
    loss, gradient = LOSS[kind]
    a, v = oracle.simple_adjacency(edges.numpy(), n), intervention.factors.detach().numpy()
    assert penalty.item() == pytest.approx(loss(a, v), rel=1e-12)
    assert intervention.factors.grad is not None
    np.testing.assert_allclose(intervention.factors.grad.numpy(), gradient(a, v), atol=1e-10)


def test_mf_penalty_takes_the_scores_that_are_there_already() -> None:
    edges, n = random_graph(30, 90)
    adj = adjacency(edges, n)
    mf = MatrixFactorization(n, 4).double()
    score = mf(adj)
    assert mf.penalty(adj, score=score).item() == pytest.approx(mf.penalty(adj).item(), rel=1e-12)


@pytest.mark.parametrize("kind", FACTORS)
def test_score_is_the_inner_product_of_factors(kind: str) -> None:
    edges, n = random_graph(25, 70, undirected=False)
    adj = adjacency(edges, n)
    intervention = FACTORS[kind](n, 5).double()
    c = (intervention.factors @ intervention.factors.t()).detach()
    torch.testing.assert_close(intervention(adj).detach(), c[adj.row, adj.col], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", FACTORS)
def test_a_part_of_the_graph_reads_its_own_rows(kind: str) -> None:
    edges, n = random_graph(50, 100)
    whole = adjacency(edges, n)
    intervention = FACTORS[kind](n, 3).double()
    field = receptive_field(whole, torch.tensor([7, 3]), 2)
    part = field.layers[0]
    c = (intervention.factors @ intervention.factors.t()).detach()
    expected = c[field.n_id[part.row], field.n_id[part.col]]
    torch.testing.assert_close(intervention(part, None, field.n_id).detach(), expected)


@pytest.mark.parametrize("learns", [True, False])
def test_a_layer_that_reads_factors_alone_gives_the_bits_of_scores_from_outside(learns: bool) -> None:
    adj = adjacency(*random_graph(300, 900, 0))
    scores = MatrixFactorization(300, 7).requires_grad_(learns)
    layer = CATConv(12, 8, 4, intervention=scores)
    x = torch.randn(300, 12, requires_grad=True)
    found = []
    for score in (None, scores.structure(adj)):
        layer.zero_grad()
        layer(x, adj, score=score).square().sum().backward()
        found.append([x.grad, *(one.grad for one in layer.parameters())])
        x.grad = None
    assert [one is None for one in found[0]] == [one is None for one in found[1]]
    assert all(a is None or torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("sparse", [False, True])
def test_feature_similarity_is_the_cosine(sparse: bool) -> None:
    edges, n = random_graph(20, 60)
    adj = adjacency(edges, n)
    x = random_features(n, 9)
    x[x.abs() < 0.8] = 0.0
    x[3] = 0.0
    expected = oracle.cosine(x.numpy())[adj.row.numpy(), adj.col.numpy()]
    given = to_csr(x.numpy()) if sparse else x
    score = FeatureSimilarity()(adj, given)
    np.testing.assert_allclose(score.numpy(), expected, atol=1e-6 if sparse else 1e-12)


def test_feature_similarity_notices_changed_features() -> None:
    adj = adjacency(*KITE)
    x = random_features(5, 4)
    fs = FeatureSimilarity()
    first = fs(adj, x)
    assert fs(adj, x) is first
    x.mul_(torch.tensor([1.0, 2.0, 1.0, 1.0]))
    fs.observe(adj, x)
    assert not torch.equal(fs(adj, x), FeatureSimilarity()(adj, random_features(5, 4)))
    assert copy.deepcopy(fs)._seen is None
    now, star = fs(adj, x), adjacency(*ALL["star"])
    fs(star, random_features(6, 4))
    assert fs(adj, x) is now  # a second graph does not push out the first


def test_edge_scores_land_on_their_edges_and_loops_get_the_mean() -> None:
    edges, n = KITE
    adj = adjacency(edges, n)
    scores = torch.arange(8.0)
    entries = EdgeScores(scores)(adj)
    in_user_order = adj.to_user_order(entries)
    assert torch.equal(in_user_order[:8], scores)
    assert torch.equal(in_user_order[8:], torch.full((n,), 3.5))
    assert torch.equal(adj.to_user_order(EdgeScores(scores, loop_score=9.0)(adj))[8:], torch.full((n,), 9.0))


def test_constant_scores_every_edge_alike() -> None:
    assert torch.equal(Constant(2.0)(adjacency(*KITE)), torch.full((13,), 2.0))


def test_fifteen_lines_make_a_new_intervention() -> None:
    class DegreeAgreement(Intervention):
        """Nodes of like degree attend to each other."""

        def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
            degree = adj.degree.double().log()
            return -(degree[adj.row] - degree[adj.col]).abs()

    score = DegreeAgreement()(adjacency(*KITE))
    assert score.shape == (13,) and float(score.max()) == 0.0


def test_a_score_of_the_wrong_shape_is_refused() -> None:
    class Wrong(Intervention):
        def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
            return torch.zeros(3)

    with pytest.raises(InputError, match="expected one number for each of the 13 entries"):
        Wrong()(adjacency(*KITE))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MatrixFactorization(5, 0), "rank: 0; choose 1 or more"),
        (lambda: SelfExpression(0, 2), "num_nodes: 0"),
        (lambda: MatrixFactorization(9, 2)(adjacency(*KITE)), "made for 9 nodes, but this graph has 5"),
        (lambda: EdgeScores(torch.zeros(3))(adjacency(*KITE)), "but the graph has 8 edges"),
        (lambda: EdgeScores(torch.tensor([1.0, float("nan")])), "NaN"),
        (lambda: EdgeScores(torch.zeros(2, 2)), "one number per edge"),
        (lambda: FeatureSimilarity()(adjacency(*KITE)), "needs the input features"),
        (
            lambda: MatrixFactorization(5, 2)(adjacency(KITE[0], (5, 6), self_loops=False)),
            "nodes of one kind",
        ),
    ],
)
def test_bad_arguments_are_named(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=words):
        make()


def test_one_number_per_edge_does_not_score_a_part() -> None:
    adj = adjacency(*KITE)
    made = EdgeScores(torch.linspace(0, 1, adj.num_edges))
    with pytest.raises(InputError, match="belong to one whole graph, not to a part"):
        made.score(adj, None, torch.arange(3))


def test_an_edge_that_the_whole_lacks_is_refused_wherever_it_would_stand() -> None:
    """Before all edges, between them and behind them."""
    whole = adjacency(torch.tensor([[1, 2], [2, 1]]), 4, self_loops=False)
    made = SpectralSimilarity(rank=2)
    made.observe(whole, None)
    for ends, there in (([1, 2], True), ([2, 1], True), ([1, 0], False), ([2, 3], False), ([3, 3], False)):
        part = adjacency(torch.tensor([[0], [1]]), 2, self_loops=False)
        if there:
            assert made(part, None, torch.tensor(ends)).shape == (1,)
            continue
        with pytest.raises(InputError, match="holds an edge that is not in the whole graph"):
            made(part, None, torch.tensor(ends))
