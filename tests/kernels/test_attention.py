import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.nn import ops
from kernel_cases import GRAPHS, check, hub_graph, numbers


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 16])
@pytest.mark.parametrize("graph", GRAPHS)
def test_softmax_equals_its_definition(graph: str, heads: int) -> None:
    adj = GRAPHS[graph]()
    check(lambda logit: ops.edge_softmax(adj, logit), 5 * numbers(adj.num_entries, heads, seed=0))


def test_softmax_of_one_logit_per_entry() -> None:
    adj = GRAPHS["random"]()
    check(lambda logit: ops.edge_softmax(adj, logit), numbers(adj.num_entries, seed=0))


@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize(
    "strategy", ["feature", "implicit", "implicit by head", "explicit", "explicit by head"]
)
@pytest.mark.parametrize("graph", GRAPHS)
def test_attention_equals_its_definition(graph: str, strategy: str, heads: int) -> None:
    adj = GRAPHS[graph]()
    check(_attention(adj, strategy), *_inputs(adj, heads, strategy))


@pytest.mark.parametrize("strategy", ["feature", "implicit"])
def test_attention_without_target_logits_and_with_edge_logits(strategy: str) -> None:
    adj = GRAPHS["rectangular"]()
    a_src, _, _, structure, mix = _inputs(adj, 4, strategy)
    check(_attention(adj, strategy), a_src, None, numbers(adj.num_entries, 4, seed=5), structure, mix)


def test_a_hub_of_degree_1e5() -> None:
    adj = hub_graph(100_000, listens=True)
    check(_attention(adj, "implicit"), *_inputs(adj, 2, "implicit"))


def test_extreme_logits_stay_finite_and_minus_infinity_gets_no_weight() -> None:
    adj = GRAPHS["random"]()
    logit = 1e4 * numbers(adj.num_entries, 2, seed=0, dtype=torch.float32)
    first = adj.rowptr[:-1][adj.degree > 1]
    logit[first] = -torch.inf
    weight = ops.edge_softmax(adj, logit)
    assert weight.isfinite().all()
    assert (weight[first] == 0).all()
    torch.testing.assert_close(ops.segment_sum(adj, weight), torch.ones(adj.num_dst, 2))


def _attention(adj: Adjacency, strategy: str) -> "Attend":
    return Attend(adj, strategy.startswith("explicit"))


class Attend:
    def __init__(self, adj: Adjacency, explicit: bool) -> None:
        self.adj, self.explicit = adj, explicit

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        a_src, a_dst, edge_logit, structure, mix = inputs
        assert a_src is not None
        return ops.attention(self.adj, a_src, a_dst, edge_logit, structure, mix, 0.2, self.explicit)


def _inputs(adj: Adjacency, heads: int, strategy: str) -> tuple[Tensor | None, ...]:
    a_src, a_dst = numbers(adj.num_src, heads, seed=1), numbers(adj.num_dst, heads, seed=2)
    width = heads if "by head" in strategy else 1
    structure = None if strategy == "feature" else numbers(adj.num_entries, width, seed=3)
    mix = numbers(heads, 2, seed=4) if strategy.startswith("implicit") else None
    return a_src, a_dst, None, structure, mix
