"""Vectors whose cosine says how close two nodes stand, against dense definitions."""

import numpy as np
import pytest
import torch

from conjoint import InputError
from conjoint.graph.proximity import diffusion_vectors, smoothed_features, spectral_vectors
from conjoint.graph.sparse import to_csr
from graphs import ALL, KITE, random_features, random_graph


def dense_walk(edges: np.ndarray, n: int) -> np.ndarray:
    a = np.eye(n)
    a[edges[0], edges[1]] = a[edges[1], edges[0]] = 1.0
    root = np.sqrt(a.sum(axis=1))
    return a / np.outer(root, root)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def test_the_leading_eigenvectors_of_a_connected_graph_up_to_rotation() -> None:
    edges, n = random_graph(300, 1500)
    values, vectors = np.linalg.eigh(dense_walk(edges.numpy(), n))
    assert values[-1] == pytest.approx(1.0) and values[-2] < 0.99  # one component
    k = int(np.argmax(values[::-1][5:12] - values[::-1][6:13])) + 6  # cut where the gap is widest
    exact = unit(vectors[:, ::-1][:, :k])
    found = spectral_vectors(edges, n, k).numpy()
    np.testing.assert_allclose(
        found @ found.T, exact @ exact.T, atol=0.02
    )  # no gaps to speak of: the hardest case


@pytest.mark.parametrize("name", ALL)
def test_small_graphs_get_their_whole_spectrum(name: str) -> None:
    edges, n = ALL[name]
    found = spectral_vectors(edges, n, 8).numpy()
    assert found.shape == (n, 8)
    # All eigenvectors together are an orthogonal matrix; those of eigenvalue 1 share a column, which matters
    # only between components, and no edge crosses these.
    a = dense_walk(edges.numpy(), n) > 0
    np.testing.assert_allclose((found @ found.T)[a], np.eye(n)[a], atol=1e-4)


def test_many_components_do_not_use_up_the_vectors() -> None:
    """Two cliques joined by one edge among ten lone pairs: the second vector still tells them apart."""
    block = torch.combinations(torch.arange(6)).t()
    pairs = torch.arange(12, 32).view(2, 10)
    edges = torch.cat([block, block + 6, torch.tensor([[0], [6]]), pairs], dim=1)
    z = spectral_vectors(edges, 32, 2)
    assert float(z[1] @ z[2]) > 0.99 and float(z[1] @ z[8]) < 0.2
    assert float(z[12] @ z[22]) == pytest.approx(1.0)  # the two ends of a pair are alike


def test_diffusion_cosines_are_those_of_page_rank_rows() -> None:
    edges, n = random_graph(80, 160)
    walk = dense_walk(edges.numpy(), n)
    rows = sum(np.linalg.matrix_power(0.85 * walk, t) for t in range(11))
    exact = unit(np.asarray(rows))
    found = diffusion_vectors(edges, n, rank=20000).numpy()
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.05)
    coarse = diffusion_vectors(edges, n, rank=128).numpy()
    assert np.abs(coarse @ coarse.T - exact @ exact.T).mean() < 2.0 / np.sqrt(128)


@pytest.mark.parametrize("make", [spectral_vectors, diffusion_vectors])
def test_the_same_seed_gives_the_same_bits(make: object) -> None:
    assert callable(make)
    edges, n = random_graph(60, 150)
    assert torch.equal(make(edges, n, seed=3), make(edges, n, seed=3))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="rank=1"):
        spectral_vectors(*KITE, 1)
    with pytest.raises(InputError, match=r"restart=1\.5"):
        diffusion_vectors(*KITE, restart=1.5)


def dense_smoothed(x: np.ndarray, edges: np.ndarray, n: int, hops: int) -> np.ndarray:
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
    np.testing.assert_allclose(found.numpy(), dense_smoothed(x.numpy(), edges.numpy(), n, hops), atol=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_reduction_keeps_cosines_of_low_rank_features(sparse: bool) -> None:
    edges, n = random_graph(60, 150)
    x = random_features(n, 5, dtype=torch.float32) @ random_features(5, 40, seed=1, dtype=torch.float32)
    exact = dense_smoothed(x.numpy(), edges.numpy(), n, 2)
    found = smoothed_features(to_csr(x.numpy()) if sparse else x, edges, n, rank=8)
    assert found.shape == (n, 8)
    np.testing.assert_allclose((found @ found.t()).numpy(), exact @ exact.T, atol=1e-4)


def test_the_same_seed_smooths_to_the_same_bits() -> None:
    edges, n = random_graph(60, 150)
    x = random_features(n, 50, dtype=torch.float32)
    first, again = (smoothed_features(x, edges, n, rank=8, seed=3) for _ in range(2))
    assert torch.equal(first, again)


def test_bad_arguments_of_smoothing_are_named() -> None:
    with pytest.raises(InputError, match="hops=-1"):
        smoothed_features(torch.ones(5, 2), KITE[0], 5, hops=-1)
