from contextlib import nullcontext

import pytest
import torch
from torch_geometric.utils import to_undirected

from conjoint import kernels
from conjoint.graph.adjacency import adjacency
from conjoint.nn import ops
from conjoint.nn.ops.entries import sum_entries
from kernel_cases import GRAPHS, check, hub_graph, numbers


@pytest.mark.parametrize("rank", [1, 3, 6, 7, 8, 40])
@pytest.mark.parametrize("graph", GRAPHS)
def test_scores_and_their_sum(graph: str, rank: int) -> None:
    adj = GRAPHS[graph]()
    left, right = numbers(adj.num_dst, rank, seed=1), numbers(adj.num_src, rank, seed=2)
    check(lambda a, b: ops.edge_dot(adj, a, b), left, right)
    check(lambda v: ops.edge_total(adj, v), right)


def test_factors_on_both_sides_gather_both_gradients() -> None:
    adj = GRAPHS["random"]()
    check(lambda v: ops.edge_dot(adj, v, v), numbers(adj.num_src, 5, seed=1))


def test_the_sum_over_an_undirected_graph_needs_no_second_walk() -> None:
    one_way = GRAPHS["random"]()
    both_ways = adjacency(to_undirected(one_way.edge_index), one_way.num_src)
    assert both_ways.symmetric and not one_way.symmetric
    check(lambda v: ops.edge_total(both_ways, v), numbers(one_way.num_src, 5, seed=1))


@pytest.mark.parametrize("rank", [1, 6, 33])
@pytest.mark.parametrize("graph", GRAPHS)
def test_spread(graph: str, rank: int) -> None:
    adj = GRAPHS[graph]()
    check(lambda v: ops.spread(adj, v), numbers(adj.num_dst, rank, seed=1))


@pytest.mark.parametrize("hub_is", ["target", "source"])
def test_a_hub_of_degree_1e5(hub_is: str) -> None:
    adj = hub_graph(100_000, hub_is=hub_is)
    check(lambda v: (ops.edge_dot(adj, v, v), ops.edge_total(adj, v)), 0.1 * numbers(adj.num_src, 4, seed=1))


@pytest.mark.parametrize("graph", GRAPHS)
def test_sum_over_entries(graph: str) -> None:
    if not kernels.active():
        pytest.skip("the sum is a kernel alone")
    adj = GRAPHS[graph]()
    for width in ((3,), ()):
        value = numbers(adj.num_entries, *width, seed=1)
        for entries, node in ((adj, adj.row), (adj.transposed, adj.col)):
            exact = value.new_zeros(entries.rowptr.numel() - 1, *width).index_add(0, node, value)
            torch.testing.assert_close(sum_entries(entries, value), exact)


def test_only_simple_entries_count() -> None:
    adj = GRAPHS["parallel edges"]()
    ones = torch.ones(6, 1)
    assert ops.edge_total(adj, ones) == int(adj.simple.sum())


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 16])
@pytest.mark.parametrize("graph", GRAPHS)
def test_softmax_equals_its_definition(graph: str, heads: int) -> None:
    adj = GRAPHS[graph]()
    check(lambda logit: ops.edge_softmax(adj, logit), 5 * numbers(adj.num_entries, heads, seed=0))


def test_softmax_of_one_logit_per_entry() -> None:
    adj = GRAPHS["random"]()
    check(lambda logit: ops.edge_softmax(adj, logit), numbers(adj.num_entries, seed=0))


def test_extreme_logits_stay_finite_and_minus_infinity_gets_no_weight() -> None:
    adj = GRAPHS["random"]()
    logit = 1e4 * numbers(adj.num_entries, 2, seed=0, dtype=torch.float32)
    first = adj.rowptr[:-1][adj.degree > 1]
    logit[first] = -torch.inf
    weight = ops.edge_softmax(adj, logit)
    assert weight.isfinite().all()
    assert (weight[first] == 0).all()
    total = torch.zeros(adj.num_dst, 2).index_add(0, adj.row, weight)
    torch.testing.assert_close(total, torch.ones(adj.num_dst, 2))


@pytest.mark.parametrize("fast", [True, False])
def test_a_score_has_a_gradient_of_its_own_without_kernels_too(fast: bool) -> None:
    """Which makes no tensor of entries x rank; torch's own gradient would."""
    adj = GRAPHS["random"]()
    with nullcontext() if fast else kernels.disabled():
        left, right = (numbers(adj.num_src, 3, seed=k).requires_grad_() for k in (1, 2))
        for found in (ops.edge_dot(adj, left, right), ops.edge_dot(adj, left, left)):
            assert type(found.grad_fn).__name__ == "_EdgeDotBackward"
        assert type(ops.spread(adj, left).grad_fn).__name__ == "SparseProductBackward"
