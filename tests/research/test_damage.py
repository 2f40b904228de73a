"""Damage is of the size that was asked for, nothing else changes, and the seed decides it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import to_csr
from research.damage import add_edges, changed, drop_edges, move_features

NODES, WIDTH = 50, 40
Damage = Callable[[Graph, float, np.random.Generator], Graph]


@pytest.fixture
def data() -> Graph:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, NODES, (2, 120))
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    edges = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = (rng.integers(1, 9, (NODES, WIDTH)) * (rng.random((NODES, WIDTH)) < 0.15)).astype(np.float32)
    return Graph(torch.from_numpy(x), torch.arange(NODES) % 3, edges)


def pairs_of(data: Graph) -> set[tuple[int, int]]:
    return {(i, j) for i, j in data.edge_index.t().tolist() if i < j}


def draw(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0, 2.0])
def test_added_edges_are_new_undirected_and_as_many_as_asked_for(data: Graph, share: float) -> None:
    before, made = pairs_of(data), add_edges(data, share, draw())
    after = pairs_of(made)
    assert before <= after and len(after) == len(before) + round(share * len(before))
    ends = made.edge_index.t().tolist()
    assert len({tuple(pair) for pair in ends}) == len(ends)  # no edge twice
    assert {(j, i) for i, j in ends} == {(i, j) for i, j in ends}  # both directions
    assert all(i != j for i, j in ends)
    assert torch.equal(made.edge_index[:, : data.edge_index.size(1)], data.edge_index)


def test_added_edges_fall_on_all_nodes_alike() -> None:
    ring = torch.stack([torch.arange(400), (torch.arange(400) + 1) % 400])
    data = Graph(torch.ones(400, 1), torch.zeros(400), torch.cat([ring, ring.flip(0)], dim=1))
    new = add_edges(data, 20.0, draw()).edge_index[:, 800:]
    count = torch.bincount(new.flatten(), minlength=400) / 2
    assert float(count.min()) > 20 and float(count.max()) < 64  # 40 expected, deviation 6


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_dropped_edges_go_in_both_directions(data: Graph, share: float) -> None:
    weights = torch.arange(float(data.num_edges))
    data = data.changed(edge_weight=weights)
    before, made = pairs_of(data), drop_edges(data, share, draw())
    after = pairs_of(made)
    assert after <= before and len(after) == len(before) - round(share * len(before))
    assert made.edge_index.size(1) == 2 * len(after)
    weight = dict(zip(map(tuple, data.edge_index.t().tolist()), weights.tolist(), strict=True))
    assert made.edge_weight is not None
    kept = zip(map(tuple, made.edge_index.t().tolist()), made.edge_weight.tolist(), strict=True)
    assert all(weight[pair] == value for pair, value in kept)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_moved_features_keep_their_node_and_value_and_land_where_nothing_was(
    data: Graph, share: float, sparse: bool
) -> None:
    old = data.x.numpy()
    if sparse:
        data = data.changed(given_x=to_csr(old))
    made = move_features(data, share, draw())
    assert made.x.layout == data.x.layout
    new = made.x.to_dense().numpy()
    for before, after in zip(old, new, strict=True):
        assert sorted(before[before != 0]) == sorted(after[after != 0])
    landed = (new != 0) & (old == 0)
    assert landed.sum() == round(share * (old != 0).sum())
    assert np.array_equal(new[(new != 0) & ~landed], old[(new != 0) & ~landed])


@pytest.mark.parametrize("damage", [add_edges, drop_edges, move_features])
def test_the_generator_decides_and_the_given_graph_stays(data: Graph, damage: Damage) -> None:
    edges, x = data.edge_index.clone(), data.x.clone()
    one, again, other = (damage(data, 0.5, draw(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.edge_index, again.edge_index) and torch.equal(one.x, again.x)
    same = one.edge_index.shape == other.edge_index.shape and torch.equal(one.edge_index, other.edge_index)
    assert not (same and torch.equal(one.x, other.x))
    assert torch.equal(data.edge_index, edges) and torch.equal(data.x, x)


def test_a_variant_draws_from_the_seed(data: Graph) -> None:
    variant = {"drop-edges": {"share": 0.5}, "add-edges": {"share": 0.5}}
    one, again, other = (changed(data, variant, seed) for seed in (4, 4, 5))
    assert torch.equal(one.edge_index, again.edge_index)
    assert not torch.equal(one.edge_index, other.edge_index)


@pytest.mark.parametrize("options", [{}, {"share": -0.1}, {"share": 1.5}, {"share": "half"}, {"part": 1}])
def test_options_that_make_no_sense_are_refused(data: Graph, options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="share, a number from 0 to 1"):
        changed(data, {"drop-edges": options}, 0)


def test_damage_that_cannot_be_done_is_refused(data: Graph) -> None:
    with pytest.raises(InputError, match="take fewer"):
        add_edges(data, 50.0, draw())
    data = data.changed(given_x=torch.ones(NODES, 4))
    with pytest.raises(InputError, match="must be sparse"):
        move_features(data, 0.5, draw())
    data = data.changed(edge_weight=torch.ones(data.num_edges))
    with pytest.raises(InputError, match="edge weights"):
        add_edges(data, 0.5, draw())
