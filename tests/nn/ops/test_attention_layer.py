import math

import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.nn import ops
from conjoint.nn.ops import attention_layer
from kernel_cases import GRAPHS, check, hub_graph, numbers, random_graph

SEED = torch.tensor([77])
STRATEGIES = ("feature", "implicit", "explicit", "explicit by head")


# Up to eight channels a head is one vector (csrc/narrow.h), with special forms for the shapes of the paper;
# with 16, 32 or 64 it is several (csrc/wide.h).
SHAPES = [(1, 7), (1, 8), (3, 20), (3, 5), (8, 3), (8, 8), (16, 1), (17, 2), (2, 16), (8, 32)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_whole_layer_equals_its_definition(graph: str, strategy: str, shape: tuple[int, int]) -> None:
    adj = GRAPHS[graph]()
    heads, channels = shape
    width = (heads,) if "by head" in strategy else ()
    check(
        Layer(adj, 0.5),
        numbers(adj.num_src, heads, channels, seed=1),
        numbers(heads, channels, seed=2),
        numbers(heads, channels, seed=3),
        numbers(adj.num_entries, heads, seed=4) if strategy == "feature" else None,
        None if strategy == "feature" else numbers(adj.num_entries, *width, seed=5),
        numbers(heads, 2, seed=6) if strategy == "implicit" else None,
        numbers(heads, seed=7),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("graph", GRAPHS)
def test_merged_heads(graph: str, dropout: float, shape: tuple[int, int]) -> None:
    adj = GRAPHS[graph]()
    heads = shape[0]
    vectors = (numbers(*shape, seed=2), numbers(*shape, seed=3), None, None, None, numbers(heads, seed=7))
    check(Layer(adj, dropout, merge=True), numbers(adj.num_src, *shape, seed=1), *vectors)


@pytest.mark.parametrize("merge", [False, True])
def test_a_bias_is_added_to_what_comes_out(merge: bool) -> None:
    adj = GRAPHS["rectangular"]()
    vectors = (numbers(4, 5, seed=2), numbers(4, 5, seed=3))

    def run(h: Tensor, att_src: Tensor, att_dst: Tensor, bias: Tensor) -> Tensor:
        unused = (None, None, None, None)
        return ops.attend(adj, h, att_src, att_dst, *unused, 0.2, 0.5, SEED, merge, bias)

    check(run, numbers(adj.num_src, 4, 5, seed=1), *vectors, numbers(5 if merge else 20, seed=4))


def test_heads_may_share_their_mix_and_epsilon() -> None:
    adj = GRAPHS["rectangular"]()
    vectors = (numbers(4, 5, seed=2), numbers(4, 5, seed=3), None, numbers(adj.num_entries, seed=5))
    shared = (numbers(1, 2, seed=6), numbers(1, seed=7))
    check(Layer(adj, 0.5), numbers(adj.num_src, 4, 5, seed=1), *vectors, *shared)


def test_a_row_that_is_not_a_number_stays_alone() -> None:
    """Short rows are read with some of what follows them, which must not leak into sums or products."""
    adj = GRAPHS["random"]()
    read = set(adj.col[adj.row == 0].tolist())
    broken = next(
        node + 1 for node in sorted(read) if node + 1 not in read
    )  # right behind a row that is read
    x = numbers(adj.num_src, 1, 7, seed=1)
    x[broken] = float("nan")
    alpha = numbers(adj.num_entries, 1, seed=2).requires_grad_()
    out = ops.aggregate(adj, alpha, x.requires_grad_())
    assert out[0].isfinite().all()
    grad = torch.ones_like(out)
    grad[1] = float("nan")  # right behind the gradient of row 0
    d_alpha, _ = torch.autograd.grad(out, (alpha, x), grad)
    assert d_alpha[adj.row == 0].isfinite().all()


@pytest.mark.parametrize("learns", range(4))
def test_each_input_alone_may_learn(learns: int) -> None:
    adj = GRAPHS["rectangular"]()
    shapes = ((adj.num_src, 2, 5), (2, 5), (2, 5), (adj.num_entries,))
    inputs = [numbers(*shape, seed=place) for place, shape in enumerate(shapes)]

    def run(moving: Tensor) -> Tensor:
        parts = [moving if place == learns else part.to(moving.dtype) for place, part in enumerate(inputs)]
        h, att_src, att_dst, score = parts
        return ops.attend(adj, h, att_src, att_dst, None, score, None, None, 0.2)

    check(run, inputs[learns])


class Layer:
    def __init__(self, adj: Adjacency, dropout: float, merge: bool = False) -> None:
        self.adj, self.dropout, self.merge = adj, dropout, merge

    def __call__(self, h: Tensor, att_src: Tensor, att_dst: Tensor, *parts: Tensor | None) -> Tensor:
        edge_logit, structure, mix, eps = parts
        inputs = (h, att_src, att_dst, edge_logit, structure, mix, eps)
        return ops.attend(self.adj, *inputs, 0.2, self.dropout, SEED, self.merge)


@pytest.mark.parametrize("rank", [1, 2, 5, 7, 8, 11])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_layer_makes_the_structure_of_factors_itself(graph: str, rank: int) -> None:
    adj = GRAPHS[graph]()

    def layer(h: Tensor, att_src: Tensor, att_dst: Tensor, mix: Tensor, factors: Tensor) -> Tensor:
        parts = (None, None, mix, None, 0.2, 0.5, SEED)
        return ops.attend(adj, h, att_src, att_dst, *parts, factors=factors)

    h, att_src, att_dst = numbers(adj.num_src, 2, 8, seed=1), numbers(2, 8, seed=2), numbers(2, 8, seed=3)
    check(layer, h, att_src, att_dst, numbers(2, 2, seed=6), 0.3 * numbers(adj.num_src, rank, seed=4))


@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize(
    "strategy", ["feature", "implicit", "implicit by head", "explicit", "explicit by head"]
)
@pytest.mark.parametrize("graph", GRAPHS)
def test_attention_equals_its_definition(graph: str, strategy: str, heads: int) -> None:
    adj = GRAPHS[graph]()
    check(Weights(adj), *_inputs(adj, heads, strategy))


@pytest.mark.parametrize("strategy", ["feature", "implicit"])
def test_attention_without_target_logits_and_with_edge_logits(strategy: str) -> None:
    adj = GRAPHS["rectangular"]()
    a_src, _, _, structure, mix = _inputs(adj, 4, strategy)
    check(Weights(adj), a_src, None, numbers(adj.num_entries, 4, seed=5), structure, mix)


def test_a_hub_of_degree_1e5() -> None:
    adj = hub_graph(100_000, hub_is="target")
    check(Weights(adj), *_inputs(adj, 2, "implicit"))


class Weights:
    def __init__(self, adj: Adjacency) -> None:
        self.adj = adj

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        a_src, a_dst, edge_logit, structure, mix = inputs
        assert a_src is not None
        return ops.attention(self.adj, a_src, a_dst, edge_logit, structure, mix, 0.2)


def _inputs(adj: Adjacency, heads: int, strategy: str) -> tuple[Tensor | None, ...]:
    a_src, a_dst = numbers(adj.num_src, heads, seed=1), numbers(adj.num_dst, heads, seed=2)
    width = heads if "by head" in strategy else 1
    structure = None if strategy == "feature" else numbers(adj.num_entries, width, seed=3)
    mix = numbers(heads, 2, seed=4) if strategy.startswith("implicit") else None
    return a_src, a_dst, None, structure, mix


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("structured", [True, False])
def test_a_layer_writes_into_its_scratch_memory_alone(
    heads: int, structured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Tensor] = []

    def watched(like: Tensor, *shape: int) -> Tensor:
        size = math.prod(shape)
        held.append(like.new_full((size + 512,), 7.0))
        return held[-1][:size].view(shape)

    monkeypatch.setattr(attention_layer, "empty", watched)
    adj = random_graph(20_000, 30_000, 0)
    h, att = numbers(adj.num_src, heads, 2, seed=1).requires_grad_(), numbers(2, heads, 2, seed=2)
    score = numbers(adj.num_entries, seed=3) if structured else None
    mix = numbers(heads, 2, seed=4).requires_grad_() if structured else None
    eps = numbers(heads, seed=5).requires_grad_()
    ops.attend(adj, h, att[0], att[1], None, score, mix, eps, 0.2).sum().backward()
    assert len(held) >= 3 and all(bool((one[-512:] == 7.0).all()) for one in held)
    kept = held[0][:-512]  # what the way back needs: all of it is written
    assert not structured or not bool((kept == 7.0).any())
