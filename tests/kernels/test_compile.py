"""torch.compile sees the kernels as ordinary functions: one graph, same numbers."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.nn import ops
from kernel_cases import numbers, outcome, random_graph

# torch's own tracer of autograd functions trips over torch's own notice.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

SEED = torch.tensor([42])
ADJ = random_graph(50, 200, 0)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    yield
    torch.compiler.reset()


def _structure(adj: Adjacency) -> Callable[..., Tensor]:
    def run(v: Tensor) -> Tensor:
        score, total = ops.edge_dot(adj, v, v), ops.edge_total(adj, v)
        return ops.edge_softmax(adj, score.unsqueeze(1)) * total + ops.spread(adj, v).sum()

    return run


def _attention(adj: Adjacency) -> Callable[..., Tensor]:
    def run(x: Tensor, att: Tensor, mix: Tensor, eps: Tensor, structure: Tensor) -> Tensor:
        a_src, a_dst = ops.head_dots(x, att[0], att[1])
        alpha, _ = ops.attention(adj, a_src, a_dst, None, structure, mix, 0.2, False)
        return ops.activate_and_drop(ops.aggregate(adj, alpha, x, eps, 0.4, SEED), "elu", 0.5, SEED)

    return run


@pytest.mark.parametrize(
    "step, shapes",
    [
        (_structure(ADJ), [(50, 4)]),
        (_attention(ADJ), [(50, 4, 8), (2, 4, 8), (4, 2), (4,), (ADJ.num_entries, 1)]),
    ],
    ids=["structure", "attention"],
)
def test_whole_graph_without_breaks(step: Callable[..., Tensor], shapes: list[tuple[int, ...]]) -> None:
    inputs = [numbers(*shape, seed=place) for place, shape in enumerate(shapes)]
    eager = outcome(step, inputs, fast=True)
    compiled = outcome(torch.compile(step, backend="aot_eager", fullgraph=True), inputs, fast=True)
    for found, wanted in zip(compiled, eager, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_operations_are_registered_with_torch() -> None:
    """opcheck: schema, fake shapes and eager behaviour of an operation agree."""
    v = numbers(50, 4, seed=0)
    assert ADJ.transposed.rowptr.numel() == 51
    torch.library.opcheck(torch.ops.conjoint.edge_dot.default, (ADJ.rowptr, ADJ.col, v, v))
    arguments = (
        ADJ.rowptr,
        ADJ.col,
        numbers(ADJ.num_entries, 2, seed=1),
        numbers(50, 2, 3, seed=2),
        None,
        SEED,
        0.5,
    )
    torch.library.opcheck(torch.ops.conjoint.aggregate.default, arguments)
