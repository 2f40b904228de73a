"""The explanation of a node is the attention that the network computes, row for row."""

import numpy as np
import pytest
import torch

from conjoint import CAT, InputError, MatrixFactorization
from conjoint.evaluation.explain import attention_of, explain
from conjoint.nn.zoo import build
from conjoint.training import TrainConfig
from small_training import small_data

DATA, CONFIG = small_data(), TrainConfig()


def network() -> CAT:
    torch.manual_seed(0)
    return CAT(12, 4, 3, heads=2, intervention=MatrixFactorization(60, 3))


def test_rows_are_those_of_the_whole_attention() -> None:
    attention = attention_of(network(), DATA, CONFIG)
    for node in (0, 17, 59):
        found = explain(attention, node)
        for layer, view in zip(attention, found.layers, strict=True):
            for neighbour, weights in zip(found.neighbours, view.conjoint, strict=True):
                here = (layer.edge_index[0] == int(neighbour)) & (layer.edge_index[1] == node)
                np.testing.assert_allclose(weights, layer.conjoint[here][0].double().numpy())
            assert view.conjoint.sum(axis=0) == pytest.approx(1)
            assert view.means()["structural"].sum() == pytest.approx(1)
        assert node in found.neighbours


def test_the_most_listened_to_come_first() -> None:
    attention = attention_of(network(), DATA, CONFIG)
    both, last = explain(attention, 3), explain(attention, 3, layer=1)
    total = sum(view.means()["conjoint"] for view in both.layers)
    assert (np.diff(total) <= 0).all()
    assert (np.diff(last.layers[1].means()["conjoint"]) <= 0).all()


def test_parallel_edges_speak_with_one_voice() -> None:
    twice = DATA.changed(edges=torch.cat([DATA.edge_index, DATA.edge_index], dim=1))
    found = explain(attention_of(network(), twice, CONFIG), 3)
    assert len(set(found.neighbours.tolist())) == len(found.neighbours)
    assert found.layers[0].conjoint.sum(axis=0) == pytest.approx(1)


def test_gat_has_no_structural_part_and_gcn_no_attention() -> None:
    sizes = {"features": 12, "classes": 3, "num_nodes": 60, "seed": 0}
    gat = explain(attention_of(build("gat", **sizes), DATA, CONFIG), 0)
    assert gat.layers[0].structural is None and gat.layers[0].mix is None
    with pytest.raises(InputError, match="GCN has no attention"):
        attention_of(build("gcn", **sizes), DATA, CONFIG)
    with pytest.raises(InputError, match="node 99"):
        explain(attention_of(network(), DATA, CONFIG), 99)
