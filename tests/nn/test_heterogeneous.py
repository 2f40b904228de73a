"""Relations between nodes of two kinds: which interventions make sense there, and what the others say."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import HeteroConv, to_hetero

import oracle
from conjoint import CATConv, Constant, FeatureSimilarity, InputError, Intervention, MatrixFactorization
from conjoint.graph.sparse import to_csr
from conjoint.nn.interventions import (
    EmbeddingSimilarity,
    JaccardSimilarity,
    NormalisedFactorization,
    Several,
    SmoothedSimilarity,
    SpectralSimilarity,
)
from graphs import random_features

SOURCES, TARGETS = 9, 6
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 8, 0], [0, 1, 2, 3, 4, 5, 5, 3]])
X_SRC, X_DST = random_features(SOURCES, 4, dtype=torch.float32), random_features(TARGETS, 4, 1, torch.float32)


def layer(intervention: Intervention | Tensor, in_dst: int = 4) -> CATConv:
    options = {"add_self_loops": False, "strategy": "explicit"}
    return CATConv((4, in_dst), 5, intervention=intervention, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_one_vocabulary_are_compared_across_kinds(sparse: bool) -> None:
    both = oracle.cosine(torch.cat([X_SRC, X_DST]).double().numpy())
    conv = layer(FeatureSimilarity())
    x_src, x_dst = (to_csr(X_SRC.numpy()), to_csr(X_DST.numpy())) if sparse else (X_SRC, X_DST)
    _, attention = conv((x_src, x_dst), EDGES, return_attention_weights=True)
    src, dst = EDGES.numpy()
    expected = np.exp(both[src, SOURCES + dst])
    expected /= np.bincount(dst, weights=expected)[dst]
    np.testing.assert_allclose(attention.structural.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    "given", [torch.randn(8), Constant(), Several([torch.randn(8), FeatureSimilarity()])]
)
def test_numbers_per_edge_and_constants_serve_any_relation(given: Intervention | Tensor) -> None:
    _, attention = layer(given)((X_SRC, X_DST), EDGES, return_attention_weights=True)
    torch.testing.assert_close(attention.sums(), torch.ones(TARGETS, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        MatrixFactorization(SOURCES, 2),
        NormalisedFactorization(SOURCES, 2),
        EmbeddingSimilarity(torch.randn(SOURCES, 3)),
        SpectralSimilarity(),
        SmoothedSimilarity(),
        JaccardSimilarity(),
        Several([Constant(), SpectralSimilarity()]),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("targets", [TARGETS, SOURCES])
def test_scores_of_one_kind_say_so_even_where_the_numbers_of_nodes_agree(
    wrong: Intervention, targets: int
) -> None:
    x_dst = random_features(targets, 4, 2, torch.float32)
    with pytest.raises(InputError, match=r"nodes of one kind.*one number per edge"):
        layer(wrong)((X_SRC, x_dst), EDGES)


def test_features_of_different_width_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="sources have 4 and targets 3"):
        layer(FeatureSimilarity(), 3)((X_SRC, X_DST[:, :3]), EDGES)
    with pytest.raises(InputError, match="sources have 4 and targets none"):
        layer(FeatureSimilarity())((X_SRC, None), EDGES)


def test_each_relation_has_its_own_intervention_and_all_of_them_learn() -> None:
    x = {"paper": X_SRC, "author": X_DST}
    cites, by = torch.tensor([[0, 1, 2, 7], [1, 2, 0, 8]]), EDGES
    conv = HeteroConv(
        {
            ("paper", "cites", "paper"): CATConv(-1, 5, intervention=NormalisedFactorization(SOURCES, 2)),
            ("paper", "by", "author"): CATConv(
                (-1, -1), 5, add_self_loops=False, intervention=torch.randn(EDGES.size(1))
            ),
        }
    )
    out = conv(x, {("paper", "cites", "paper"): cites, ("paper", "by", "author"): by})
    (out["paper"].square().sum() + out["author"].square().sum()).backward()
    assert all(parameter.grad is not None for parameter in conv.parameters())


def test_to_hetero_makes_a_layer_for_each_relation() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = CATConv((-1, -1), 5, add_self_loops=False, intervention=Constant())

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    kinds = [("paper", "cites", "paper"), ("paper", "by", "author")]
    network = to_hetero(Net(), (["paper", "author"], kinds))
    edges = {kinds[0]: torch.tensor([[0, 1, 2], [1, 2, 0]]), kinds[1]: EDGES}
    out = network({"paper": X_SRC, "author": X_DST}, edges)
    assert out["paper"].shape == (SOURCES, 5) and out["author"].shape == (TARGETS, 5)
