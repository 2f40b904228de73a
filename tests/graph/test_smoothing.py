"""Smoothed features against the dense definition."""

import numpy as np
import pytest
import torch

from conjoint import InputError
from conjoint.graph.smoothing import smoothed_features
from conjoint.graph.sparse import to_csr
from graphs import KITE, random_features, random_graph


def dense(x: np.ndarray, edges: np.ndarray, n: int, hops: int) -> np.ndarray:
    a = np.eye(n)
    a[edges[1], edges[0]] = 1.0
    root = 1.0 / np.sqrt(a.sum(axis=1))
    walk = root[:, None] * a * root[None, :]
    out = np.linalg.matrix_power(walk, hops) @ x
    return out / np.linalg.norm(out, axis=1, keepdims=True)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_narrow_features_are_smoothed_exactly(hops: int) -> None:
    edges, n = KITE
    x = random_features(n, 4, dtype=torch.float32)
    found = smoothed_features(x, edges, n, hops=hops)
    np.testing.assert_allclose(found.numpy(), dense(x.numpy(), edges.numpy(), n, hops), atol=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_reduction_keeps_cosines_of_low_rank_features(sparse: bool) -> None:
    edges, n = random_graph(60, 150)
    x = random_features(n, 5, dtype=torch.float32) @ random_features(5, 40, seed=1, dtype=torch.float32)
    exact = dense(x.numpy(), edges.numpy(), n, 2)
    found = smoothed_features(to_csr(x.numpy()) if sparse else x, edges, n, rank=8)
    assert found.shape == (n, 8)
    np.testing.assert_allclose((found @ found.t()).numpy(), exact @ exact.T, atol=1e-4)


def test_the_same_seed_gives_the_same_bits() -> None:
    edges, n = random_graph(60, 150)
    x = random_features(n, 50, dtype=torch.float32)
    first, again = (smoothed_features(x, edges, n, rank=8, seed=3) for _ in range(2))
    assert torch.equal(first, again)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="hops=-1"):
        smoothed_features(torch.ones(5, 2), KITE[0], 5, hops=-1)
