"""Role features: what they are on a graph that can be drawn, and that they follow the nodes."""

import numpy as np
import torch

from conjoint.graph.roles import ROLES, role_features
from graphs import KITE, STAR, random_graph


def test_they_follow_the_nodes() -> None:
    edges, nodes = random_graph(40, 90)
    order = torch.from_numpy(np.random.default_rng(0).permutation(nodes))
    moved = role_features(order[edges], nodes)
    assert torch.allclose(moved[order], role_features(edges, nodes), atol=1e-5)


def test_columns_have_mean_0_and_deviation_1() -> None:
    made = role_features(*random_graph(40, 90))
    assert made.shape == (40, ROLES) and made.dtype == torch.float32
    assert torch.allclose(made.mean(dim=0), torch.zeros(ROLES), atol=1e-5)
    assert torch.allclose(made.std(dim=0, correction=0), torch.ones(ROLES), atol=1e-5)


def test_nodes_of_one_role_have_one_row_and_a_hub_another() -> None:
    made = role_features(*STAR)
    assert torch.allclose(made[1:], made[1].expand(5, ROLES), atol=1e-6)
    assert made[0, 0] > made[1, 0] and made[0, 3] > made[1, 3]  # degree, PageRank


def test_isolated_nodes_and_graphs_without_edges_are_finite() -> None:
    assert bool(role_features(*KITE).isfinite().all())
    assert torch.equal(role_features(torch.empty(2, 0, dtype=torch.int64), 3), torch.zeros(3, ROLES))


def test_self_loops_tell_nothing() -> None:
    edges, nodes = KITE
    looped = torch.cat([edges, torch.arange(nodes).repeat(2, 1)], dim=1)
    assert torch.equal(role_features(looped, nodes), role_features(edges, nodes))
