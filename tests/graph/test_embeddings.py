"""Embeddings against dense linear algebra on small graphs, and against what DeepWalk must find."""

import builtins
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from conjoint.errors import InputError
from conjoint.graph.embeddings import (
    deepwalk,
    degree_features,
    join,
    laplacian_eigenvectors,
    netmf,
    random_walks,
    spectral_features,
    structural_features,
)
from conjoint.graph.sparse import to_csr

Floats = npt.NDArray[np.float64]


def two_groups(each: int = 30, loners: int = 1, seed: int = 0) -> tuple[Tensor, int]:
    """Two dense groups with a few bridges, and nodes without any edge at the end."""
    generator = np.random.default_rng(seed)
    group = np.arange(2 * each) // each
    chance = np.where(group[:, None] == group[None, :], 0.4, 0.02)
    upper = np.triu(generator.random((2 * each, 2 * each)) < chance, k=1)
    source, target = np.nonzero(upper)
    one_way = torch.from_numpy(np.stack([source, target]))
    return torch.cat([one_way, one_way.flip(0)], dim=1), 2 * each + loners


def dense(edge_index: Tensor, num_nodes: int) -> Floats:
    a = np.zeros((num_nodes, num_nodes))
    a[edge_index[0].numpy(), edge_index[1].numpy()] = 1.0
    return a


def normalised(a: Floats) -> Floats:
    degree = a.sum(axis=1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return root[:, None] * a * root[None, :]


@pytest.mark.parametrize("k", [3, 40])  # 3: Lanczos; 40 of 61 nodes: dense
def test_laplacian_eigenvectors_solve_the_eigenproblem(k: int) -> None:
    edges, nodes = two_groups()
    s = normalised(dense(edges, nodes))
    vectors = laplacian_eigenvectors(edges, nodes, k).numpy().astype(np.float64)
    values = np.einsum("nk,nk->k", vectors, s @ vectors)
    np.testing.assert_allclose(s @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-5)
    exact = np.sort(np.linalg.eigvalsh(s))[::-1]
    np.testing.assert_allclose(values, exact[1 : k + 1], atol=1e-5)  # the first one is the trivial 1


def test_eigenvectors_of_components_are_left_out() -> None:
    edges, nodes = two_groups(each=15, loners=0)
    apart = torch.cat([edges, edges + nodes, edges + 2 * nodes], dim=1)
    values = np.linalg.eigvalsh(normalised(dense(apart, 3 * nodes)))
    assert (values > 1 - 1e-9).sum() == 3
    vectors = laplacian_eigenvectors(apart, 3 * nodes, 2).numpy()
    found = np.einsum("nk,nk->k", vectors, normalised(dense(apart, 3 * nodes)) @ vectors)
    assert (found < 1 - 1e-3).all()


def test_embeddings_repeat_and_signs_are_settled() -> None:
    edges, nodes = two_groups()
    for make in (laplacian_eigenvectors, netmf):
        one = make(edges, nodes, 4)
        assert torch.equal(one, make(edges, nodes, 4))
        peak = one.gather(0, one.abs().argmax(dim=0, keepdim=True))
        assert bool((peak > 0).all())
    # The order in which edges are listed is no part of the graph.
    shuffled = edges[:, torch.randperm(edges.size(1), generator=torch.Generator().manual_seed(0))]
    assert torch.equal(laplacian_eigenvectors(edges, nodes, 4), laplacian_eigenvectors(shuffled, nodes, 4))


def exact_netmf(a: Floats, window: int, negative: float) -> Floats:
    """log max(M, 1) with every power of the random walk written out."""
    degree = a.sum(axis=1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = inverse[:, None] * a
    mean_power = np.mean([np.linalg.matrix_power(walk, r) for r in range(1, window + 1)], axis=0)
    m = degree.sum() / negative * mean_power * inverse[None, :]
    return np.log(np.maximum(m, 1.0))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("block", [7, 1024])
def test_netmf_factorises_the_matrix_of_the_paper(parts: int, block: int) -> None:
    edges, nodes = two_groups(each=20, loners=0)
    edges = torch.cat([edges + part * nodes for part in range(parts)], dim=1)
    nodes *= parts
    a = dense(edges, nodes)
    # The method drops directions with a negative eigenvalue; the oracle does the same.
    degree = a.sum(axis=1)
    values, vectors = np.linalg.eigh(normalised(a))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    root = np.sqrt(degree)
    target = exact_netmf_of_normalised(positive, root, degree.sum(), window=4, negative=1.0)
    full = netmf(edges, nodes, nodes - 1, window=4, rank=nodes, block=block).numpy()
    best = np.linalg.eigvalsh(target)
    signs = signs_of(full, target)
    rebuilt = (full * signs) @ full.T
    left_out = np.abs(best).min()  # one direction of `nodes` is left out
    assert np.linalg.norm(rebuilt - target, 2) < left_out + 1e-2 * np.abs(best).max()


def exact_netmf_of_normalised(
    s: Floats, root_degree: Floats, volume: float, window: int, negative: float
) -> Floats:
    mean_power = np.mean([np.linalg.matrix_power(s, r) for r in range(1, window + 1)], axis=0)
    m = volume / negative * mean_power / root_degree[:, None] / root_degree[None, :]
    return np.log(np.maximum(m, 1.0))


def signs_of(factor: Floats, matrix: Floats) -> Floats:
    """Which sign each direction of a symmetric matrix has."""
    return np.sign(np.einsum("nk,nm,mk->k", factor, matrix, factor))


def test_the_two_forms_of_the_netmf_matrix_agree() -> None:
    edges, nodes = two_groups(loners=0)
    a = dense(edges, nodes)
    degree = a.sum(axis=1)
    by_walks = exact_netmf(a, window=5, negative=1.0)
    by_spectrum = exact_netmf_of_normalised(normalised(a), np.sqrt(degree), degree.sum(), 5, 1.0)
    np.testing.assert_allclose(by_walks, by_spectrum, atol=1e-9)


def test_walks_follow_edges_and_start_everywhere_equally_often() -> None:
    edges, nodes = two_groups(loners=2)
    walks = random_walks(edges, nodes, walks_per_node=3, length=20, seed=0)
    assert walks.shape == (3 * nodes, 20)
    assert (np.bincount(walks[:, 0], minlength=nodes) == 3).all()
    a = dense(edges, nodes)
    a[[nodes - 2, nodes - 1], [nodes - 2, nodes - 1]] = 1.0  # who stands alone stays
    assert (a[walks[:, :-1], walks[:, 1:]] == 1.0).all()
    assert not np.array_equal(walks, random_walks(edges, nodes, 3, 20, seed=1))


def test_walks_choose_neighbours_uniformly() -> None:
    star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
    walks = random_walks(star, 5, walks_per_node=4000, length=2, seed=0)
    leaves = walks[walks[:, 0] == 0, 1]
    np.testing.assert_allclose(
        np.bincount(leaves, minlength=5) / len(leaves), [0, 0.25, 0.25, 0.25, 0.25], atol=0.03
    )


def test_deepwalk_brings_groups_together_and_repeats() -> None:
    pytest.importorskip("gensim")
    edges, nodes = two_groups(loners=0)
    one = deepwalk(edges, nodes, 16, epochs=2)
    assert torch.equal(one, deepwalk(edges, nodes, 16, epochs=2))
    assert not torch.equal(one, deepwalk(edges, nodes, 16, epochs=2, seed=1))
    unit = torch.nn.functional.normalize(one, dim=1)
    likeness = unit @ unit.t()
    group = torch.arange(nodes) // 30
    same = group[:, None] == group[None, :]
    assert float(likeness[same].mean()) > float(likeness[~same].mean()) + 0.05


def test_deepwalk_without_gensim_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("gensim"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    edges, nodes = two_groups()
    with pytest.raises(InputError, match=r"pip install 'conjoint\[embeddings\]'"):
        deepwalk(edges, nodes, 8)


def test_join_gives_both_blocks_the_same_weight() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]])
    embedding = torch.tensor([[10.0], [-20.0], [5.0]])
    joined = join(x, embedding)
    assert torch.equal(joined[:, :2], x)
    torch.testing.assert_close(joined[:, 2:].square().sum(), x.square().sum())
    torch.testing.assert_close(join(x, embedding, 0.1)[:, 2:], 0.1 * joined[:, 2:])
    sparse = join(to_csr(x.numpy()), embedding)
    assert sparse.layout == torch.sparse_csr
    torch.testing.assert_close(sparse.to_dense(), joined)


def test_join_refuses_rows_of_another_graph() -> None:
    with pytest.raises(InputError, match="2 rows"):
        join(torch.ones(3, 2), torch.ones(2, 1))


@pytest.mark.parametrize("make", [laplacian_eigenvectors, netmf])
@pytest.mark.parametrize("size", [0, 61])
def test_more_columns_than_the_graph_has_are_refused(make: Any, size: int) -> None:
    edges, nodes = two_groups()
    with pytest.raises(InputError, match=f"={size}: the graph has 61 nodes"):
        make(edges, nodes, size)


def two_cliques(size: int) -> torch.Tensor:
    """Two complete graphs joined by one edge, and one node on its own."""
    block = torch.combinations(torch.arange(size), 2).T
    pairs = torch.cat([block, block + size, torch.tensor([[0], [size]])], dim=1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def test_spectral_features_tell_communities_apart() -> None:
    n = 13
    x = spectral_features(two_cliques(6), n, 2, seed=0)
    assert x.shape == (n, 2) and x.dtype == torch.float32
    assert torch.allclose(x.norm(dim=1)[:12], torch.ones(12)), "each row has length 1"
    assert bool((x[12] == 0).all()), "a node without edges has no direction"
    same, other = x[1] @ x[2], x[1] @ x[8]
    assert same > 0.99 and other < 0.5


def test_spectral_features_match_the_exact_vectors_up_to_rotation() -> None:
    edges, n, k = two_cliques(6), 12, 2
    dense = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.ones(edges.size(1)))
    scale = dense.sum(1).rsqrt()
    vectors = torch.linalg.svd(scale[:, None] * dense * scale)[0][:, :k]
    exact = torch.nn.functional.normalize(vectors, dim=1)
    x = spectral_features(edges, n, k, seed=0)
    assert torch.allclose(x @ x.T, exact @ exact.T, atol=1e-4)


def test_the_same_seed_gives_the_same_features() -> None:
    edges = two_cliques(8)
    assert torch.equal(spectral_features(edges, 17, 4, seed=3), spectral_features(edges, 17, 4, seed=3))


def test_degrees_are_capped() -> None:
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    x = degree_features(star, 5, 3)
    assert x.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    "name",
    ["spectral", "spectral:", "spectral:x", "spectral:0", "spectral:13", "degree:1", "degree:99999", "pca:3"],
)
def test_bad_names(name: str) -> None:
    with pytest.raises(InputError):
        structural_features(name, two_cliques(6), 13)
