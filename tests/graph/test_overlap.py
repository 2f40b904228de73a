"""Shared neighbours of the two ends of an edge, exact and sampled."""

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph import overlap
from conjoint.graph.overlap import alike, edge_jaccard
from conjoint.graph.sparse import to_csr
from graphs import ALL, KITE, random_graph


def dense(edges: torch.Tensor, n: int) -> np.ndarray:
    a = np.eye(n)
    a[edges[0], edges[1]] = a[edges[1], edges[0]] = 1.0
    return a


def dense_jaccard(a: np.ndarray) -> np.ndarray:
    shared = a @ a
    return shared / (a.sum(1)[:, None] + a.sum(1)[None, :] - shared)


def dense_adamic(a: np.ndarray) -> np.ndarray:
    shared = a @ np.diag(1.0 / np.log1p(a.sum(1))) @ a
    return shared / np.sqrt(np.outer(np.diag(shared), np.diag(shared)))


ORACLES = {"jaccard": (overlap.jaccard, dense_jaccard), "adamic": (overlap.adamic_adar, dense_adamic)}


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("name", [*ALL, "random"])
def test_small_neighbourhoods_are_compared_exactly(kind: str, name: str) -> None:
    edges, n = ALL[name] if name in ALL else random_graph(60, 300)
    made, oracle = ORACLES[kind]
    expected = oracle(dense(edges, n))[edges[0], edges[1]]
    np.testing.assert_allclose(made(edges, n, edges).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ORACLES)
def test_work_in_small_pieces_gives_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    edges, n = random_graph(60, 300)
    made = ORACLES[kind][0]
    whole = made(edges, n, edges)
    monkeypatch.setattr(overlap, "AT_ONCE", 50)
    assert torch.equal(made(edges, n, edges), whole)


@pytest.mark.parametrize("kind", ORACLES)
def test_hubs_are_sampled_without_bias(kind: str) -> None:
    """Two hubs with 300 neighbours each, 200 of them shared, seen through 64: right on average over seeds."""
    left, right = torch.arange(2, 302), torch.arange(102, 402)
    edges = torch.cat(
        [torch.stack([torch.zeros(300).long(), left]), torch.stack([torch.ones(300).long(), right])], 1
    )
    pair = torch.tensor([[0], [1]])
    made, oracle = ORACLES[kind]
    exact = float(oracle(dense(edges, 402))[0, 1])
    sampled = torch.cat([made(edges, 402, pair, cap=64, seed=seed) for seed in range(40)])
    assert float(sampled.std()) > 0.0  # it is a sample
    assert abs(float(sampled.mean()) - exact) < 0.03
    assert float((sampled - exact).abs().max()) < 0.25


def test_a_hub_costs_no_more_than_its_sample() -> None:
    edges = torch.stack([torch.zeros(5000).long(), torch.arange(1, 5001)])
    kept, limit = overlap._smallest(
        overlap.matrix_of(edges, 5001), np.random.default_rng(0).random(5001), 100
    )
    assert int(np.diff(kept.indptr).max()) == 100
    assert 0.01 < limit[0] < 0.04 and bool((limit[1:] == 2.0).all())


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="cap=0"):
        overlap.jaccard(*KITE, KITE[0], cap=0)


def words() -> torch.Tensor:
    rng = np.random.default_rng(2)
    return torch.from_numpy((rng.random((30, 12)) * (rng.random((30, 12)) < 0.3)).astype(np.float32))


def test_the_similarity_is_that_of_the_sets_of_words() -> None:
    x = words()
    x[0] = 0.0
    edges = torch.from_numpy(np.random.default_rng(3).integers(0, 30, (2, 200)))
    sets = [set(np.flatnonzero(row)) for row in x.numpy()]
    expected = [len(sets[i] & sets[j]) / max(len(sets[i] | sets[j]), 1) for i, j in edges.t().tolist()]
    torch.testing.assert_close(edge_jaccard(x, edges), torch.tensor(expected))
    torch.testing.assert_close(edge_jaccard(to_csr(x.numpy()), edges), torch.tensor(expected))
    assert torch.equal(alike(x, edges, 0.2), torch.tensor(expected) >= 0.2)


def test_a_graph_without_edges_has_no_similarities() -> None:
    assert edge_jaccard(words(), torch.zeros(2, 0, dtype=torch.long)).shape == (0,)


def test_features_without_a_zero_are_refused() -> None:
    with pytest.raises(InputError, match="none is zero"):
        alike(torch.ones(4, 3), torch.tensor([[0], [1]]), 0.01)
