import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.kernels import memory
from conjoint.nn import ops
from kernel_cases import GRAPHS, check, hub_graph, numbers

SEED = torch.tensor([123456789012345678])


@pytest.mark.parametrize(
    "shape", [(1, 7), (1, 1), (1, 8), (2, 16), (3, 33), (8, 8), (16, 5), (8, 32), (3, 64)]
)
@pytest.mark.parametrize("graph", GRAPHS)
def test_sum_with_dropout_and_self_term(graph: str, shape: tuple[int, int]) -> None:
    adj = GRAPHS[graph]()
    heads, channels = shape
    alpha, x = numbers(adj.num_entries, heads, seed=1), numbers(adj.num_src, heads, channels, seed=2)
    check(_summing(adj, 0.6), alpha, x, numbers(heads, seed=3))
    check(_summing(adj, 0.0), alpha, x)


@pytest.mark.parametrize("shape", [(1, 8), (8, 8), (8, 6)])
@pytest.mark.parametrize("hub_is", ["target", "source"])
@pytest.mark.parametrize("degree", [127, 128, 255, 256])
def test_rows_of_whole_runs(degree: int, hub_is: str, shape: tuple[int, int]) -> None:
    """With its own loop the hub has a run more, or one entry more than a run; sums are spilled at its end."""
    adj, (heads, channels) = hub_graph(degree, hub_is=hub_is), shape
    alpha, x = numbers(adj.num_entries, heads, seed=1), numbers(adj.num_src, heads, channels, seed=2)
    check(_summing(adj, 0.4), alpha, x, numbers(heads, seed=3))


@pytest.mark.parametrize("channels", [19, 32])
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("graph", GRAPHS)
def test_heads_that_read_the_same_rows(graph: str, heads: int, channels: int) -> None:
    adj = GRAPHS[graph]()
    alpha, x = numbers(adj.num_entries, heads, seed=1), numbers(adj.num_src, 1, channels, seed=2)
    check(_summing(adj, 0.3), alpha, x, numbers(heads, seed=3))


@pytest.mark.parametrize("x_heads", [1, 4])
def test_weights_alone_learn_when_x_is_given(x_heads: int) -> None:
    adj = GRAPHS["rectangular"]()
    alpha, x = numbers(adj.num_entries, 4, seed=1), numbers(adj.num_src, x_heads, 12, seed=2)

    def given(weights: Tensor, self_weight: Tensor) -> Tensor:
        return ops.aggregate(adj, weights, x.to(weights.dtype), self_weight, 0.5, SEED)

    check(given, alpha, numbers(4, seed=3))


def test_x_alone_learns_when_weights_are_given() -> None:
    adj = GRAPHS["random"]()
    alpha = numbers(adj.num_entries, 2, seed=1)
    check(
        lambda x: ops.aggregate(adj, alpha.to(x.dtype), x, None, 0.5, SEED),
        numbers(adj.num_src, 2, 12, seed=2),
    )


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("channels", [16, 24, 32, 64, 128])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_step_of_propagation(graph: str, channels: int, dropout: float) -> None:
    """One head, weights that are given: csrc/wide.h at some of these widths, aggregation.h at others."""
    adj = GRAPHS[graph]()
    alpha, x = numbers(adj.num_entries, 1, seed=1), numbers(adj.num_src, 1, channels, seed=2)
    check(lambda b: _summing(adj, dropout)(alpha.to(b.dtype), b), x)
    check(_summing(adj, dropout), alpha, x)


@pytest.mark.parametrize("learns", ["weights too", "x alone"])
@pytest.mark.parametrize("shape", [(1, 7), (1, 32), (8, 8), (2, 33), (8, 32)])
@pytest.mark.parametrize("graph", ["random", "rectangular", "hub as target", "hub as source"])
def test_few_rows_of_the_result_count(graph: str, shape: tuple[int, int], learns: str) -> None:
    """As where few nodes are labelled: the gradient of most rows is 0, and the kernel passes them over."""
    adj = GRAPHS[graph]()
    alpha, x = numbers(adj.num_entries, shape[0], seed=1), numbers(adj.num_src, *shape, seed=2)
    if learns == "weights too":
        check(lambda a, b, c: _summing(adj, 0.3)(a, b, c)[3:9], alpha, x, numbers(shape[0], seed=3))
    else:
        check(lambda b: _summing(adj, 0.3)(alpha.to(b.dtype), b)[3:9], x)


@pytest.mark.parametrize("hub_is", ["target", "source"])
def test_a_hub_of_degree_1e5(hub_is: str) -> None:
    adj = hub_graph(100_000, hub_is=hub_is)
    alpha, x = numbers(adj.num_entries, 2, seed=1), numbers(adj.num_src, 2, 3, seed=2)
    check(_summing(adj, 0.6), alpha, x, numbers(2, seed=3))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("graph", GRAPHS)
def test_aggregation_before_projection(graph: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(memory, "HUGE_BYTES", 0)
    adj = GRAPHS[graph]()
    alpha, x = numbers(adj.num_entries, 3, seed=1), numbers(adj.num_src, 1, 11, seed=2)

    def run(alpha: Tensor, x: Tensor, weight: Tensor, eps: Tensor) -> Tensor:
        return ops.aggregate_and_project(adj, alpha, x, weight, eps, 0.4, SEED)

    check(run, alpha, x, numbers(3, 6, 11, seed=3), numbers(3, seed=4))
    given = x.squeeze(1)
    check(
        lambda a, w: run(a, given.to(a.dtype).unsqueeze(1), w, w[:, 0, 0]), alpha, numbers(3, 6, 11, seed=3)
    )


def test_everything_dropped_is_zero() -> None:
    adj = GRAPHS["random"]()
    alpha, x = numbers(adj.num_entries, 2, seed=1), numbers(adj.num_src, 2, 3, seed=2)
    assert (ops.aggregate(adj, alpha, x, None, 1.0, SEED) == 0).all()


def test_slices_and_transposes_are_read_as_they_are_meant() -> None:
    adj = GRAPHS["random"]()
    alpha = numbers(2, adj.num_entries, seed=1)
    x = numbers(adj.num_src + 3, 8, 2, seed=2)
    check(lambda a, b: ops.aggregate(adj, a.t(), b[3:].transpose(1, 2)), alpha, x)


def _summing(adj: Adjacency, dropout: float) -> "Summing":
    return Summing(adj, dropout)


class Summing:
    def __init__(self, adj: Adjacency, dropout: float) -> None:
        self.adj, self.dropout = adj, dropout

    def __call__(self, alpha: Tensor, x: Tensor, self_weight: Tensor | None = None) -> Tensor:
        return ops.aggregate(self.adj, alpha, x, self_weight, self.dropout, SEED)
