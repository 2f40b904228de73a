"""New rows solve the least-squares problem that they should, and known rows stay as they are."""

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint import CAT, Constant
from conjoint.errors import InputError
from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.graph.proximity import spectral_vectors
from conjoint.nn import zoo
from conjoint.nn.interventions import (
    EdgeScores,
    EmbeddingSimilarity,
    LowRank,
    MatrixFactorization,
    NormalisedExpression,
    NormalisedFactorization,
    SelfExpression,
    Several,
    SpectralSimilarity,
    catalogue,
)
from conjoint.nn.new_nodes import extended, extended_spectrum, with_new_nodes
from conjoint.selection.diagnosis import settle
from topics import topic_graph

KNOWN, NODES = 80, 90


def graphs(alone: bool = False) -> tuple[Adjacency, Adjacency]:
    """Ninety nodes of which the last ten are new; `alone`: no two of the new ones are linked."""
    edges = topic_graph(NODES, words=30).edge_index
    old = edges[:, (edges < KNOWN).all(dim=0)]
    if alone:
        edges = edges[:, (edges < KNOWN).any(dim=0)]
    return adjacency(old, KNOWN), adjacency(edges, NODES)


def dense(adj: Adjacency, normalise: bool) -> Tensor:
    a = torch.zeros(adj.num_dst, adj.num_src, dtype=torch.float64)
    a[adj.row[adj.simple], adj.col[adj.simple]] = 1.0
    if not normalise:
        return a
    a += torch.eye(adj.num_dst, dtype=torch.float64)
    root = a.sum(1).sqrt()
    return a / torch.outer(root, root)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "kind", [MatrixFactorization, SelfExpression, NormalisedFactorization, NormalisedExpression]
)
def test_new_factors_minimise_the_error_of_their_rows(kind: type[LowRank], alone: bool) -> None:
    torch.manual_seed(0)
    before, after = graphs(alone)
    given = kind(KNOWN, 4)
    settle(given, before)
    old = given.factors.detach().clone()
    made = extended(given, before, after)
    assert isinstance(made, kind) and torch.equal(made.factors[:KNOWN], old)
    matrix = dense(after, kind in (NormalisedFactorization, NormalisedExpression))
    factors = made.factors.detach().double()
    basis = factors.t() if kind in (MatrixFactorization, NormalisedFactorization) else factors.t() @ matrix
    best = torch.linalg.lstsq(basis.t(), matrix[KNOWN:].t()).solution.t()
    torch.testing.assert_close(factors[KNOWN:], best, rtol=2e-2, atol=2e-3)


def test_an_extended_spectrum_is_near_that_of_the_whole_graph() -> None:
    """Cosines of new pairs, not signs or order of the vectors, are what a score is made of."""
    edges = topic_graph(600, words=30, random_edges=300).edge_index
    before = adjacency(edges[:, (edges < 580).all(dim=0)], 580)
    after = adjacency(edges, 600)
    made = extended_spectrum(before, after, 3).double().numpy()
    whole = spectral_vectors(edges, 600, 3).double().numpy()
    old = spectral_vectors(before.edge_index, 580, 3).double().numpy()
    assert np.allclose(made[:580], old, atol=1e-5)
    new = after.row.numpy() >= 580
    row, col = after.row.numpy()[new], after.col.numpy()[new]
    cosines = [(v[row] * v[col]).sum(axis=1) for v in (made, whole)]
    assert np.corrcoef(*cosines)[0, 1] > 0.9
    assert np.allclose(np.linalg.norm(made[580:], axis=1), 1.0)


def test_many_new_nodes_have_the_spectrum_computed_again() -> None:
    before, after = graphs()  # ten new nodes for eighty
    given = SpectralSimilarity(rank=4)
    assert extended(given, before, after) is given
    edges = after.edge_index
    few = adjacency(edges[:, (edges < KNOWN + 2).all(dim=0)], KNOWN + 2)
    made = extended(SpectralSimilarity(rank=4, temperature=3.0), before, few)
    assert isinstance(made, EmbeddingSimilarity)
    torch.testing.assert_close(made.temperature(torch.ones(())), torch.tensor(3.0))


def test_a_new_node_without_edges_prefers_nobody() -> None:
    before, _ = graphs()
    after = adjacency(before.edge_index[:, before.edge_index[0] != before.edge_index[1]], KNOWN + 1)
    assert bool((extended_spectrum(before, after, 4)[KNOWN] == 0).all())
    made = extended(MatrixFactorization(KNOWN, 3), before, after)
    assert isinstance(made, LowRank) and float(made.factors[KNOWN].detach().abs().max()) == 0.0


@pytest.mark.parametrize("name", [*catalogue.KINDS, "smooth+mf+spectral"])
@pytest.mark.parametrize("letter", ["i", "e"])
def test_every_intervention_serves_the_larger_graph(name: str, letter: str) -> None:
    data = topic_graph(NODES, words=30)
    before, after = graphs()
    x = data.x.to_dense()
    model = zoo.build(f"cat-{letter}-{name}", features=30, classes=3, num_nodes=KNOWN, seed=1).eval()
    was = model(x[:KNOWN], before)
    larger = with_new_nodes(model, before, after).eval()
    out = larger(x, after)
    assert out.shape == (NODES, 3) and bool(torch.isfinite(out).all())
    torch.testing.assert_close(model(x[:KNOWN], before), was)  # the trained network is left alone


def test_a_graph_that_did_not_grow_gives_the_same_answers() -> None:
    before, _ = graphs()
    x = topic_graph(NODES, words=30).x.to_dense()[:KNOWN]
    for name in ("cat-i-mf", "cat-e-spectral", "cat-e-smooth", "gcn-svd"):
        model = zoo.build(name, features=30, classes=3, num_nodes=KNOWN, seed=1).eval()
        graph = model.prepare(before.edge_index, KNOWN)
        larger = with_new_nodes(model, before, before).eval()
        torch.testing.assert_close(larger(x, larger.prepare(before.edge_index, KNOWN)), model(x, graph))


def test_given_vectors_are_averaged_over_neighbours() -> None:
    before, after = graphs(alone=True)
    vectors = torch.randn(KNOWN, 5, generator=torch.Generator().manual_seed(2))
    made = extended(EmbeddingSimilarity(vectors), before, after)
    assert isinstance(made, EmbeddingSimilarity)
    own = (after.row == KNOWN) & (after.col != KNOWN)
    expected = torch.nn.functional.normalize(made.vectors[after.col[own]].mean(dim=0), dim=0)
    torch.testing.assert_close(made.vectors[KNOWN], expected)


@pytest.mark.parametrize("weighted", [True, False])
def test_mean_rows_are_weighted_means_over_known_sources(weighted: bool) -> None:
    sources, targets = torch.tensor(
        [[0, 3, 1, 4, 0], [4, 4, 6, 5, 1]]
    )  # 0 to 3 known; 5 receives from 4 alone
    before = adjacency(torch.tensor([[0], [1]]), 4)
    after = adjacency(torch.stack([sources, targets]), 7)
    after = after.with_weights(torch.tensor([1.0, 3.0, 5.0, 2.0, 1.0])) if weighted else after
    held = torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    first = (held[0] + 3 * held[3]) / 4 if weighted else (held[0] + held[3]) / 2
    factors = MatrixFactorization(4, 2)
    factors.factors.data = held.clone()
    model = CAT(3, 2, 2, intervention=Several([factors, EmbeddingSimilarity(held), Constant()]))
    larger = with_new_nodes(model, before, after, rows="mean")
    assert isinstance(larger, CAT) and isinstance(larger.intervention, Several)
    learnt, fixed, _ = larger.intervention.each
    assert isinstance(learnt, LowRank) and isinstance(fixed, EmbeddingSimilarity)
    torch.testing.assert_close(
        learnt.factors, torch.cat([held, torch.stack([first, torch.zeros(2), held[1]])])
    )
    unit = torch.nn.functional.normalize(held, dim=1)
    mean = (unit[0] + 3 * unit[3]) / 4 if weighted else (unit[0] + unit[3]) / 2
    rows = torch.nn.functional.normalize(torch.stack([mean, torch.zeros(2), unit[1]]), dim=1)
    torch.testing.assert_close(fixed.vectors, torch.cat([unit, rows]))
    assert factors.factors.size(0) == 4  # the trained network itself stays as it was


def test_known_nodes_that_do_not_receive_from_new_ones_keep_their_answers() -> None:
    before, after = graphs()
    edges = after.edge_index[:, (after.edge_index[1] >= KNOWN) | (after.edge_index[0] < KNOWN)]
    x = topic_graph(NODES, words=30).x.to_dense()
    for name in ("cat-i-mf", "cat-e-fs", "gat"):
        model = zoo.build(name, features=30, classes=3, num_nodes=KNOWN, seed=1).eval()
        larger = with_new_nodes(model, before, adjacency(edges, NODES), rows="mean").eval()
        torch.testing.assert_close(larger(x, edges)[:KNOWN], model(x[:KNOWN], before))


def test_scores_per_edge_and_shrunken_graphs_are_refused() -> None:
    before, after = graphs()
    with pytest.raises(InputError, match="one score for each edge"):
        extended(Several([EdgeScores(torch.ones(3))]), before, after)
    model = zoo.build("gat", features=3, classes=3, num_nodes=NODES)
    with pytest.raises(InputError, match="80 nodes, but the network knows 90"):
        with_new_nodes(model, after, before)


def test_members_of_an_ensemble_are_extended_each_by_itself() -> None:
    edges, known = torch.tensor([[0, 1, 2, 1, 3, 0], [1, 0, 1, 2, 0, 3]]), 3
    before, after = adjacency(edges[:, :4], known), adjacency(edges, 4)
    one = {"name": "a", "model": "cat-i-mf", "settings": {}, "weight": 1.0, "divides_rows": False}
    sizes = {"features": 2, "classes": 2, "num_nodes": known}
    model = zoo.build("ensemble", **sizes, members=[one], temperature=1.0).eval()
    made = with_new_nodes(model, before, after)
    x = torch.rand(4, 2, generator=torch.Generator().manual_seed(0))
    assert made.probabilities(x, after).shape == (4, 2)
    alone = with_new_nodes(model.members[0], before, after)  # type: ignore[index,arg-type]
    torch.testing.assert_close(made.probabilities(x, after), alone.probabilities(x, after))


def test_a_new_node_between_two_components_hears_each_by_its_own_length() -> None:
    """An eigenvector has length 1 in the whole, so that its rows are smaller in a large component."""
    rng, sizes = np.random.default_rng(0), (5, 20)
    ends = [np.stack([rng.permutation(n), np.roll(np.arange(n), 1)]) for n in sizes for _ in range(2)]
    edges = np.concatenate([ends[0], ends[1], ends[2] + 5, ends[3] + 5], axis=1)
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    new = np.array([[25, 2, 25, 9, 25, 17], [2, 25, 9, 25, 17, 25]])
    before = adjacency(torch.from_numpy(edges.copy()), 25)
    after = adjacency(torch.from_numpy(np.concatenate([edges, new], axis=1)), 26)
    old, larger = dense(before, True).numpy(), dense(after, True).numpy()
    degree, part = (dense(before, False).sum(1) + 1).numpy(), np.arange(25) >= 5
    ones = np.stack([np.sqrt(degree) * (part == k) for k in (False, True)])
    ones /= np.linalg.norm(ones, axis=1, keepdims=True)  # the eigenvectors of 1, one per component
    values, others = np.linalg.eigh(old - 2 * ones.T @ ones)
    vectors = np.concatenate([ones.sum(axis=0)[:, None], others[:, ::-1][:, :3]], axis=1)
    row = larger[25, :25] @ vectors / np.maximum(np.array([1.0, *values[::-1][:3]]) - larger[25, 25], 0.1)
    known = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    made = extended_spectrum(before, after, 4).double().numpy()
    cosines = known @ row / np.linalg.norm(row)  # of signs that the eigenvectors have by chance, none is left
    assert np.allclose(made[:25] @ made[25], cosines, atol=1e-4)
