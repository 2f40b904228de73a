"""The table of attention, where structural weights are one for all heads and where they are one per head."""

import numpy as np
import pytest
import torch

from blocks import QUICK, blocks
from conjoint import CATClassifier, FeatureSimilarity, Intervention
from conjoint.estimator.base import attention_table
from conjoint.nn.attention import ConjointAttention
from conjoint.nn.interventions import Several, SpectralSimilarity


@pytest.mark.parametrize("per_head", [False, True])
def test_structural_weights_stand_beside_their_edge_and_head(per_head: bool) -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    alpha = torch.arange(6.0).view(3, 2)
    structural = 10.0 + alpha if per_head else torch.tensor([7.0, 8.0, 9.0])
    table = attention_table(
        [ConjointAttention(edges, alpha, structural=structural)], np.array(["a", "b", "c"])
    )
    assert table.conjoint.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    expected = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0] if per_head else [7.0, 7.0, 8.0, 8.0, 9.0, 9.0]
    assert table.structural.tolist() == expected
    assert table.src.tolist() == ["a", "a", "b", "b", "c", "c"] and table.head.tolist() == [0, 1] * 3


@pytest.mark.parametrize(
    "intervention", [FeatureSimilarity(), Several([FeatureSimilarity(), SpectralSimilarity(rank=4)])]
)
def test_a_network_with_several_interventions_has_a_table(intervention: Intervention) -> None:
    data = blocks()
    fitted = CATClassifier(intervention=intervention, **QUICK).fit(data.x, data.y, graph=data.graph)
    table = fitted.attention_
    assert len({len(column) for column in table}) == 1
    keys = np.stack([table.dst, table.layer, table.head], axis=1)
    _, place = np.unique(keys, axis=0, return_inverse=True)
    for weights in (table.structural, table.conjoint):
        np.testing.assert_allclose(np.bincount(place.ravel(), weights=weights), 1.0, atol=1e-5)
