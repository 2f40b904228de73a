"""What factors V are asked for in one walk equals its definition, for ranks below and above one vector."""

import pytest
import torch
from torch import Tensor

from conjoint.kernels.library import MAX_CHUNKS, partial_sums
from conjoint.nn import ops
from conjoint.nn.ops import entries, factors
from kernel_cases import GRAPHS, check, numbers, random_graph

RANKS = [1, 3, 7, 8, 12]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_scores_with_their_softmax(graph: str, rank: int) -> None:
    adj = GRAPHS[graph]()
    check(lambda v: ops.factor_attention(adj, v), 0.3 * numbers(adj.num_src, rank, seed=1))


@pytest.mark.parametrize("used", [0, 1])
def test_one_of_the_two_may_go_unused(used: int) -> None:
    adj = GRAPHS["random"]()
    check(lambda v: ops.factor_attention(adj, v)[used], numbers(adj.num_src, 7, seed=1))


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("graph", ["random", "isolated", "parallel edges", "one node", "no nodes"])
@pytest.mark.parametrize("kind", ["factors", "expression"])
def test_losses(kind: str, graph: str, rank: int) -> None:
    adj = GRAPHS[graph]()

    def loss(v: Tensor) -> Tensor:
        if kind == "expression":
            return ops.expression_loss(adj, v)
        return ops.factor_loss(adj, v, ops.edge_dot(adj, v, v))

    # Small factors: float32 is compared with 1e-5 of a sum of squares.
    check(lambda v: loss(v) / max(adj.num_simple, 1), 0.2 * numbers(adj.num_src, rank, seed=1))


def test_a_part_of_the_rows_are_targets() -> None:
    """The loss over a rectangular graph, as a batch of nodes has it: only the first rows are targets."""
    adj = GRAPHS["rectangular"]()
    check(lambda v: ops.expression_loss(adj, v) / adj.num_simple, 0.2 * numbers(adj.num_src, 5, seed=1))


def test_a_subclass_with_its_own_score_is_asked_for_it() -> None:
    from conjoint.nn.interventions import MatrixFactorization

    class Doubled(MatrixFactorization):
        def score(self, *args: Tensor, **kwargs: Tensor) -> Tensor:  # type: ignore[override]
            return 2.0 * super().score(*args, **kwargs)  # type: ignore[arg-type]

    adj = GRAPHS["random"]()
    one = Doubled(adj.num_src, 3)
    structure = one.structure(adj)
    torch.testing.assert_close(structure.score, one.score(adj))  # type: ignore[arg-type]
    torch.testing.assert_close(structure.attention, ops.edge_softmax(adj, one.score(adj)))  # type: ignore[arg-type]


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_kernels_write_into_their_scratch_memory_alone(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[torch.Tensor] = []

    def watched(like: torch.Tensor, width: int) -> torch.Tensor:
        size = partial_sums(like, width).numel()
        held.append(like.new_full((size + 4096,), 7.0))
        return held[-1][:size]

    for module in (factors, entries):
        monkeypatch.setattr(module, "partial_sums", watched)
    adj, v = random_graph(20_000, 40_000, 0), numbers(20_000, rank, seed=1)
    ops.factor_loss(adj, v, ops.edge_dot(adj, v, v))
    ops.expression_loss(adj, v)
    ops.edge_total(adj, v)
    widths = (rank * rank + 1, 2 * rank * rank, 1)
    assert [one.numel() - 4096 for one in held] == [MAX_CHUNKS * width for width in widths]
    assert all(bool((one[-4096:] == 7.0).all()) for one in held)
