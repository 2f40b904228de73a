"""The penalty from a sample: over all samples that could be drawn, its mean is the penalty itself."""

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.nn.interventions import Intervention, LowRank, MatrixFactorization, SelfExpression
from conjoint.training.penalty import PenaltySample, estimate, has_estimate
from graphs import random_graph

KINDS = [MatrixFactorization, SelfExpression]
Neighbours = Sequence[Sequence[int]]


def neighbours(edges: Tensor, count: int) -> list[list[int]]:
    return [edges[0, edges[1] == node].tolist() for node in range(count)]


def sample_of(
    nodes: list[int],
    drawn: Neighbours,
    degree: list[int],
    groups: tuple[int, ...] | None,
    total: int,
    size: int,
) -> PenaltySample:
    """Rows are all nodes of the graph, so that a gradient covers all of V."""
    count = torch.tensor([0, *map(len, drawn)])
    flat = torch.tensor([n for some in drawn for n in some], dtype=torch.long)
    adj = Adjacency(count.cumsum(0), flat, torch.arange(len(flat)), size)
    return PenaltySample(torch.tensor(nodes), adj, torch.tensor(degree), groups, total, EDGES.size(1))


EDGES, NODES = random_graph(8, 14, seed=3)
AROUND = neighbours(EDGES, NODES)


def exact(kind: type[LowRank]) -> tuple[LowRank, Tensor, Tensor]:
    model = kind(NODES, 3).double()
    with torch.no_grad():
        model.factors.copy_(torch.randn(NODES, 3, generator=torch.Generator().manual_seed(0)).double())
    value = model.penalty(adjacency(EDGES, NODES))
    (slope,) = torch.autograd.grad(value, model.factors)
    return model, value.detach(), slope


def mean_over(model: LowRank, samples: list[PenaltySample]) -> tuple[Tensor, Tensor]:
    value = torch.stack([estimate(model, model.factors, sample) for sample in samples]).mean()
    (slope,) = torch.autograd.grad(value, model.factors)
    return value.detach(), slope


def agree(kind: type[LowRank], samples: list[PenaltySample], tolerance: float = 1e-6) -> None:
    model, value, slope = exact(kind)
    found, found_slope = mean_over(model, samples)
    assert float(found) == pytest.approx(float(value), rel=tolerance)
    assert torch.allclose(found_slope, slope, rtol=tolerance, atol=tolerance * float(slope.abs().max()))


@pytest.mark.parametrize("kind", KINDS)
def test_all_nodes_together_are_exact(kind: type[LowRank]) -> None:
    degree = [len(some) for some in AROUND]
    agree(kind, [sample_of(list(range(NODES)), AROUND, degree, None, NODES, NODES)])
    agree(kind, [sample_of(list(range(NODES)), AROUND, degree, (3, 5), 2, NODES)])
    agree(kind, [sample_of(list(range(NODES)), AROUND, degree, (8,), 1, NODES)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_samples_of_nodes_are_unbiased(kind: type[LowRank], size: int) -> None:
    samples = [
        sample_of(
            list(nodes), [AROUND[n] for n in nodes], [len(AROUND[n]) for n in nodes], None, NODES, NODES
        )
        for nodes in itertools.combinations(range(NODES), size)
    ]
    agree(kind, samples)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_clusters_are_unbiased(kind: type[LowRank]) -> None:
    clusters = [[0, 1], [2], [3, 4, 5], [6, 7]]
    samples = []
    for chosen in itertools.combinations(clusters, 2):
        nodes = [node for cluster in chosen for node in cluster]
        sizes = tuple(map(len, chosen))
        around = [AROUND[n] for n in nodes]
        samples.append(sample_of(nodes, around, list(map(len, around)), sizes, len(clusters), NODES))
    agree(kind, samples)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [None, (3, 5)])
def test_drawn_neighbours_are_unbiased(kind: type[LowRank], groups: tuple[int, ...] | None) -> None:
    """Every draw of two, with replacement, from the neighbours of the most crowded node."""
    hub = max(range(NODES), key=lambda n: len(AROUND[n]))
    degree = [len(some) for some in AROUND]
    assert degree[hub] > 2
    samples = []
    for pair in itertools.product(AROUND[hub], repeat=2):
        drawn = [list(pair) if n == hub else AROUND[n] for n in range(NODES)]
        total = NODES if groups is None else 2
        samples.append(sample_of(list(range(NODES)), drawn, degree, groups, total, NODES))
    agree(kind, samples, 1e-5)  # the weights of draws are float32


def test_only_known_losses_are_estimated() -> None:
    class Other(LowRank):
        def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
            return self.factors.sum()

    assert (
        has_estimate(None) and has_estimate(MatrixFactorization(3, 2)) and has_estimate(SelfExpression(3, 2))
    )
    assert not has_estimate(Other(3, 2))


def test_a_vector_that_is_learnt_needs_no_rows_of_a_batch() -> None:
    class Weighted(Intervention):
        def __init__(self, *shape: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(shape))

    assert has_estimate(Weighted(3)) and not has_estimate(Weighted(3, 2))


def test_weights_of_drawn_neighbours_by_hand() -> None:
    """Of 6 neighbours 3 were drawn: 6 / 3 and 6^2 / (3 x 2); of 2 both are known; there is a node without."""
    sample = sample_of([0, 1, 2], [[3, 4, 5], [0, 2], []], [6, 2, 0], None, 8, 8)
    assert sample.sums_weight.tolist() == [2.0, 2.0, 2.0, 1.0, 1.0]
    assert sample.products_weight.tolist() == [6.0, 0.0, 0.0]
    assert (sample.drawn, sample.c1, sample.c2) == (3, 8 / 3, 8 * 7 / (3 * 2))
