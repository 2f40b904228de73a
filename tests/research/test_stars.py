"""The theorems on the real layer: each neighbourhood becomes a star, and CATConv reads its centre."""

from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint import CATConv, EdgeScores, MatrixFactorization, SelfExpression
from conjoint.graph.adjacency import adjacency
from conjoint.nn.interventions.factors import LowRank
from research.theory import (
    Layer,
    Neighbourhood,
    aggregate,
    colliding_pair,
    colliding_scores,
    condition_holds,
    conv,
    gat_logits,
    star,
)
from research.theory.neighbourhoods import STRATEGIES, Floats, Strategy

FEATURES, CASES = 5, 30
WITH_STRUCTURE: tuple[Literal["explicit"], Literal["implicit"]] = ("explicit", "implicit")
SAME, DIFFERENT = 1e-12, 1e-7
with_every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
# Narrow layers multiply by W first, wide ones sum first: two ways through CATConv.
with_both_widths = pytest.mark.parametrize("channels", [3, 8])


class Twin:
    """One layer twice: as the pure functions read it, and as CATConv."""

    def __init__(self, strategy: Strategy, rng: np.random.Generator, channels: int, eps: float) -> None:
        g = rng.normal(size=(FEATURES, channels))
        att_centre, att_neighbour = rng.normal(size=(2, channels))
        self.layer = Layer(g, gat_logits(g, att_centre, att_neighbour), rng.uniform(0.4, 0.7), eps)
        self.conv = conv(strategy, g, att_centre, att_neighbour, self.layer.r_s, eps)
        self.strategy = strategy

    def __call__(self, hood: Neighbourhood) -> Floats:
        x, edge_index, score = star(hood, FEATURES)
        with torch.no_grad():
            out = self.conv(x, edge_index, score=None if self.strategy == "gat" else score)
        assert isinstance(out, Tensor)
        return out[0].numpy()


@with_every_strategy
@with_both_widths
@pytest.mark.parametrize("eps", [0.0, 0.4])
def test_the_layer_computes_what_the_pure_functions_do(strategy: Strategy, channels: int, eps: float) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 20):
        twin = Twin(strategy, rng, channels, eps)
        hood = Neighbourhood(rng.integers(0, FEATURES, size=size), rng.normal(size=size))
        np.testing.assert_allclose(twin(hood), aggregate(strategy, hood, twin.layer), rtol=0.0, atol=SAME)


@with_every_strategy
@with_both_widths
def test_different_sizes_collide_until_the_self_term_comes(strategy: Strategy, channels: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(CASES):
        for eps in (0.0, 0.5):
            twin = Twin(strategy, rng, channels, eps)
            one, two = colliding_pair(strategy, twin.layer, rng)
            gap = np.linalg.norm(twin(one) - twin(two))
            assert gap > DIFFERENT if eps else gap < SAME


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
@with_both_widths
def test_same_sizes_collide_with_the_self_term_too(strategy: Strategy, channels: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(CASES):
        twin = Twin(strategy, rng, channels, eps=0.5)
        one, two = colliding_pair(strategy, twin.layer, rng, same_size=True)
        assert np.linalg.norm(twin(one) - twin(two)) < SAME


@pytest.mark.parametrize("strategy", ["implicit", "explicit"])
def test_same_size_collisions_depend_on_the_weights_only_if_implicit(strategy: Strategy) -> None:
    """The same two stars under other weights: explicit collisions stay, implicit ones go."""
    rng = np.random.default_rng(3)
    for _ in range(CASES):
        one, two = colliding_pair(strategy, Twin(strategy, rng, 3, eps=0.5).layer, rng, same_size=True)
        other = Twin(strategy, rng, 3, eps=0.5)
        gap = np.linalg.norm(other(one) - other(two))
        assert gap < SAME if strategy == "explicit" else gap > DIFFERENT


@with_every_strategy
def test_unrelated_stars_differ(strategy: Strategy) -> None:
    rng = np.random.default_rng(4)
    for _ in range(CASES):
        twin = Twin(strategy, rng, 3, eps=0.0)
        one, two = (Neighbourhood(rng.integers(0, FEATURES, size=6), rng.normal(size=6)) for _ in range(2))
        assert not condition_holds(strategy, one, two, twin.layer)
        assert np.linalg.norm(twin(one) - twin(two)) > DIFFERENT


def test_an_undirected_star_with_added_loops_and_edge_scores_shows_the_same() -> None:
    """As a user would write it: no loops in the graph, scores in the layer's own intervention."""
    rng = np.random.default_rng(5)
    twin = Twin("explicit", rng, 3, eps=0.5)
    pair = colliding_scores("explicit", np.array([0, 1, 1]), np.array([0, 0, 1]), twin.layer, rng)
    outputs = []
    for hood in pair:
        x, edge_index, score = star(hood, FEATURES)
        leaves = edge_index[:, 1:]
        scores = EdgeScores(torch.cat([score[1:], score[1:]]), loop_score=float(score[0]))
        layer = CATConv(FEATURES, 3, bias=False, strategy="explicit", intervention=scores).double()
        layer.load_state_dict(twin.conv.state_dict(), strict=False)
        with torch.no_grad():
            outputs.append(layer(x, torch.cat([leaves, leaves.flip(0)], dim=1))[0])
        np.testing.assert_allclose(outputs[-1].numpy(), twin(hood), rtol=0.0, atol=SAME)
    assert torch.dist(outputs[0], outputs[1]) < SAME


@pytest.mark.parametrize("kind", [MatrixFactorization, SelfExpression])
def test_factors_can_have_the_scores_that_collide(kind: type[LowRank]) -> None:
    """The counterexample to Corollary 1 needs no scores from outside: V V^T of rank 1 can have them.

    {a, b, b} with C = (1 + log 2, 1, 1), {a, a, b} with C = (1, 1, 1 + log 2): each centre's loop is first.
    """
    rng, more = np.random.default_rng(7), 1.0 + np.log(2.0)
    features = torch.tensor([0, 1, 1, 0, 0, 1])
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 0, 0, 3, 3, 3]])
    factors = np.array([np.sqrt(more), 1.0 / np.sqrt(more), 1.0 / np.sqrt(more), 1.0, 1.0, more])
    scores = kind(6, 1).double()
    scores.factors.data = torch.from_numpy(factors).unsqueeze(1)
    wanted = torch.tensor([more, 1.0, 1.0, 1.0, 1.0, more], dtype=torch.float64)
    torch.testing.assert_close(scores(adjacency(edges, 6, self_loops=False)), wanted)
    gaps = []
    for strategy in WITH_STRUCTURE:
        layer = CATConv(
            2, 3, strategy=strategy, intervention=scores, add_self_loops=False, bias=False
        ).double()
        for name in ("lin.weight", "att_src", "att_dst", "eps_logit"):
            value = layer.get_parameter(name)
            value.data = torch.from_numpy(rng.normal(size=value.shape))
        with torch.no_grad():
            out = layer(torch.eye(2, dtype=torch.float64)[features], edges)
        gaps.append(float((out[0] - out[3]).norm()))
    assert gaps[0] < SAME and gaps[1] > DIFFERENT
