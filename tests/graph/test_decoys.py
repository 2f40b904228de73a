"""Edges that look like chance, measured on graphs whose wrong edges are known."""

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint.graph import decoys
from conjoint.graph.proximity import reduced_features

NODES, GROUPS, FEATURES = 600, 4, 40


def planted(wrong: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Nodes of four kinds with alike features, linked within it, and `wrong` random links per right one."""
    rng = np.random.default_rng(seed)
    kind = np.arange(NODES) % GROUPS
    centres = rng.standard_normal((GROUPS, FEATURES))
    x = centres[kind] + 1.5 * rng.standard_normal((NODES, FEATURES))
    right = 4 * NODES
    first = rng.integers(0, NODES, right)
    second = (first + GROUPS * rng.integers(1, NODES // GROUPS, right)) % NODES  # the same remainder
    chance = rng.integers(0, NODES, (2, int(wrong * right)))
    pairs = np.concatenate([np.stack([first, second]), chance[:, chance[0] != chance[1]]], axis=1)
    return torch.from_numpy(x).float(), torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))


def measured(wrong: float, seed: int = 0) -> tuple[decoys.Numbers, decoys.Numbers]:
    x, edges = planted(wrong)
    vectors = reduced_features(x, rank=16, centre=True)
    return decoys.compare(vectors, edges, NODES, hops=2, seed=seed)


@pytest.mark.parametrize("wrong", [0.0, 0.5, 1.0, 2.0])
def test_the_share_of_wrong_edges_is_found(wrong: float) -> None:
    # A random pair is of one kind by chance, and then its edge is not a wrong one.
    true = wrong / (1 + wrong)
    assert decoys.noise_share(*measured(wrong)) == pytest.approx(true, abs=0.08)


def test_the_more_wrong_edges_the_sharper() -> None:
    found = [decoys.sharpness(*measured(wrong), leak=0.1) for wrong in (0.0, 0.25, 1.0)]
    assert found[0] == 0.0 < found[1] < found[2]


def test_the_sharpness_is_the_smallest_that_lets_through_no_more_than_the_leak() -> None:
    edges, random = measured(0.5)
    chosen = decoys.sharpness(edges, random, leak=0.2)
    noise = decoys.noise_share(edges, random)

    def leak(t: float) -> float:
        return float(noise * np.exp(t * random).mean() / np.exp(t * edges).mean())

    assert leak(chosen) <= 0.2 < leak(chosen - 0.25)


def test_where_no_sharpness_is_enough_the_best_is_taken() -> None:
    same = np.linspace(-1, 1, 500, dtype=np.float32)
    edges = np.concatenate([same, np.full(20, -1.0, np.float32)])  # more alike decoys than edges
    assert 0.0 < decoys.sharpness(edges, same, leak=0.1) <= decoys.SHARPEST


def test_the_same_seed_gives_the_same_decoys() -> None:
    one, again, other = measured(0.5), measured(0.5), measured(0.5, seed=1)
    assert np.array_equal(one[1], again[1]) and not np.array_equal(one[1], other[1])


def test_a_graph_without_edges_has_no_wrong_ones() -> None:
    loops = torch.arange(5).repeat(2, 1)
    edges, random = decoys.compare(np.ones((5, 2), np.float32), loops, 5, hops=2, seed=0)
    assert len(edges) == len(random) == 0 and decoys.sharpness(edges, random, 0.1) == 0.0


def test_a_small_graph_is_measured_several_times() -> None:
    x, edges = planted(0.0)
    few = edges[:, :40]
    few = torch.cat([few, few.flip(0)], dim=1)
    seen, random = decoys.compare(reduced_features(x, rank=8, centre=True), few, NODES, hops=2, seed=0)
    assert len(random) > 4 * decoys.TURNS / 2 and len(seen) > len(random)
