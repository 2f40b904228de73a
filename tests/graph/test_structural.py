"""Features from edges alone."""

import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.structural import degree_features, spectral_features, structural_features


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


def test_the_same_seed_gives_the_same_bits() -> None:
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
