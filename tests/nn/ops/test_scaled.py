"""Scores that every head multiplies by a factor of its own, and their softmax, against plain torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.nn import ops
from conjoint.nn.attention import ScaledStructure, Structure, weighted
from kernel_cases import GRAPHS, check, hub_graph, numbers, random_graph

Operation = Callable[[Adjacency, Tensor, Tensor], Tensor]


@pytest.mark.parametrize("operation", [ops.scaled, ops.scaled_softmax])
@pytest.mark.parametrize("heads", [1, 3, 8, 20])
@pytest.mark.parametrize("graph", GRAPHS)
def test_scaled_scores_and_their_softmax(graph: str, heads: int, operation: Operation) -> None:
    adj = GRAPHS[graph]()
    check(lambda s, f: operation(adj, s, f), numbers(adj.num_entries, seed=1), numbers(heads, seed=2))


@pytest.mark.parametrize("operation", [ops.scaled, ops.scaled_softmax])
def test_runs_of_runs_of_entries(operation: Operation) -> None:
    """Enough entries for sums of sums of sums, and a rest at every level."""
    adj = random_graph(5000, 4 * (16**3 + 16**2 + 17) + 3, 0, self_loops=False)
    check(lambda s, f: operation(adj, s, f), numbers(adj.num_entries, seed=1), numbers(8, seed=2))


@pytest.mark.parametrize("operation", [ops.scaled, ops.scaled_softmax])
def test_scores_that_do_not_learn(operation: Operation) -> None:
    adj = GRAPHS["random"]()
    score = numbers(adj.num_entries, seed=1)
    check(lambda f: operation(adj, score.to(f.dtype), f), numbers(8, seed=2))


@pytest.mark.parametrize("operation", [ops.scaled, ops.scaled_softmax])
def test_a_hub_of_degree_1e5(operation: Operation) -> None:
    adj = hub_graph(100_000, hub_is="target")
    check(lambda s, f: operation(adj, s, f), numbers(adj.num_entries, seed=1), numbers(8, seed=2))


def test_the_softmax_of_weighted_edges_counts_their_weights() -> None:
    adj = GRAPHS["random"]()
    adj = adj.with_weights(numbers(adj.num_edges, seed=3).abs() + 0.1)
    score, factor = numbers(adj.num_entries, seed=1), numbers(8, seed=2)
    found = ScaledStructure(adj, score, factor)
    assert torch.equal(found.score, score.unsqueeze(1) * factor)
    expected = ops.edge_softmax(adj, weighted(found.score, adj.log_weight))
    assert torch.equal(found.attention, expected)
    assert not torch.allclose(found.attention, Structure(GRAPHS["random"](), found.score).attention)
