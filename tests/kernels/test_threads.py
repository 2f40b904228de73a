"""Results are a function of the data alone: the same bits at any number of threads."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency
from conjoint.graph.sparse import to_csr
from conjoint.nn import ops
from kernel_cases import hub_graph, numbers, outcome, random_graph

SEED = torch.tensor([42])
F32 = torch.float32


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def _attend(adj: Adjacency) -> Callable[..., tuple[Tensor, ...]]:
    """A whole step of attention: scores, their softmax, both attentions, the sum, activation and dropout."""

    def run(v: Tensor, x: Tensor, att: Tensor, mix: Tensor, eps: Tensor) -> tuple[Tensor, ...]:
        score, total = ops.edge_dot(adj, v[: adj.num_dst], v), ops.edge_total(adj, v)
        a_src, a_dst = ops.head_dots(x, att[0], att[1])
        structure = ops.edge_softmax(adj, score.unsqueeze(1))
        alpha, _ = ops.attention(adj, a_src, a_dst[: adj.num_dst], None, structure, mix, 0.2)
        out = ops.aggregate(adj, alpha, x, eps, 0.4, SEED)
        return ops.activate_and_drop(out, "elu", 0.5, SEED), total, ops.spread(adj, v[: adj.num_dst])

    return run


@pytest.mark.parametrize("graph", ["random", "hub"])
def test_attention_step(graph: str, threads: Callable[[int], None]) -> None:
    adj = random_graph(4000, 30_000, 0) if graph == "random" else hub_graph(20_000, hub_is="target")
    nodes = adj.num_src
    inputs = [
        numbers(nodes, 7, seed=1, dtype=F32),
        numbers(nodes, 8, 8, seed=2, dtype=F32),
        *(numbers(*shape, seed=3, dtype=F32) for shape in ((2, 8, 8), (8, 2), (8,))),
    ]
    found = []
    for count in (1, 2, 3, 5):
        threads(count)
        found.append(outcome(_attend(adj), inputs, fast=True))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_scores_of_each_head(threads: Callable[[int], None]) -> None:
    adj = random_graph(4000, 30_000, 0)
    inputs = [numbers(adj.num_entries, seed=1, dtype=F32), numbers(8, seed=2, dtype=F32)]
    found = []
    for count in (1, 2, 3, 5):
        threads(count)
        found.append(
            outcome(lambda s, f: (ops.scaled(adj, s, f), ops.scaled_softmax(adj, s, f)), inputs, fast=True)
        )
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_sparse_projection(threads: Callable[[int], None]) -> None:
    dense = numbers(2000, 300, seed=1, dtype=F32) * (numbers(2000, 300, seed=2) > 1)
    x = to_csr(dense.numpy())
    found = []
    for count in (1, 2, 3, 7):
        threads(count)
        found.append(
            outcome(
                lambda w: ops.sparse_project(x, w, 0.5, SEED),
                [numbers(70, 300, seed=3, dtype=F32)],
                fast=True,
            )
        )
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_one_pool_of_threads(threads: Callable[[int], None]) -> None:
    """The kernels share torch's OpenMP: no second libgomp is mapped, so no second pool competes with it.

    scikit-learn's wheel brings a copy for itself; other tests may have loaded it into this process.
    """
    threads(2)
    adj = random_graph(4000, 30_000, 0)
    ops.aggregate(adj, numbers(adj.num_entries, 8, seed=1), numbers(adj.num_src, 8, 8, seed=2))
    torch.ones(1_000_000).exp()
    try:
        with open("/proc/self/maps") as maps:
            mapped = {
                line.split()[-1] for line in maps if "gomp" in line or "libomp" in line or "iomp" in line
            }
    except OSError:
        pytest.skip("no /proc here")
    shared = {path for path in mapped if "scikit_learn" not in path}
    assert len(shared) == 1, mapped
