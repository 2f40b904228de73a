"""Nodes left out of training, put back and asked about: nearly as good as training with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.splits import build_split
from conjoint.nn import zoo
from conjoint.nn.model import NodeModel
from conjoint.training import TrainConfig, fit, predict_new_nodes, predict_proba
from research.new_nodes import reordered, without_nodes
from topics import topic_graph

CONFIG = TrainConfig(epochs=60, patience=0, lr=0.02)
TRAIN, VAL = np.arange(60), np.arange(60, 120)


@pytest.fixture(scope="module")
def data() -> Graph:
    return topic_graph(400, random_edges=500, seed=2)


def trained(name: str, data: Graph) -> NodeModel:
    nodes = int(data.num_nodes or 0)
    split = build_split(TRAIN, VAL, np.arange(120, nodes), labels=data.y.numpy(), name="first")
    model = zoo.build(name, features=120, classes=3, num_nodes=nodes, seed=0, hidden=4, heads=2)
    return fit(model, data, split, CONFIG).model


@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-smooth", "cat-e-spectral", "cat-i-nmf"])
def test_held_out_nodes_are_nearly_as_well_known_as_after_retraining(name: str, data: Graph) -> None:
    removed = torch.arange(320, 400)
    small, kept = without_nodes(data, removed)
    whole = reordered(data, torch.cat([kept, removed]))
    truth = whole.y[320:]
    as_trained = predict_new_nodes(trained(name, small), small, whole, CONFIG)[320:].argmax(dim=1)
    again = predict_proba(trained(name, whole), whole, CONFIG)[320:].argmax(dim=1)
    one, other = (float((guess == truth).float().mean()) for guess in (as_trained, again))
    assert other > 0.6 and one > other - 0.08  # 80 nodes: a node is 1.25 points


def test_reordering_keeps_edges_features_and_labels(data: Graph) -> None:
    weights = torch.arange(float(data.num_edges))
    data = data.changed(edge_weight=weights)
    order = torch.from_numpy(np.random.default_rng(0).permutation(400)[:200])
    part = reordered(data, order)
    assert torch.equal(part.y, data.y[order]) and torch.equal(part.x.to_dense(), data.x.to_dense()[order])
    whole = dict(zip(map(tuple, data.edge_index.t().tolist()), weights.tolist(), strict=True))
    inside = set(order.tolist())
    expected = {pair: weight for pair, weight in whole.items() if set(pair) <= inside}
    assert part.edge_weight is not None
    found = zip(order[part.edge_index].t().tolist(), part.edge_weight.tolist(), strict=True)
    assert {tuple(pair): weight for pair, weight in found} == expected


def test_a_new_nodes_features_do_not_change_how_the_old_ones_are_read(data: Graph) -> None:
    small, _ = without_nodes(data, torch.tensor([399]))
    model = zoo.build("gat", features=120, classes=3, num_nodes=399, seed=0)
    x = data.x.to_dense()
    x[399] = -1.0
    larger = data.changed(given_x=x)
    odd, usual = (predict_new_nodes(model, small, one, CONFIG) for one in (larger, data))
    far = torch.ones(400, dtype=torch.bool)
    near = data.edge_index[0][data.edge_index[1] == 399]
    far[near] = far[399] = False
    for node in near:
        far[data.edge_index[0][data.edge_index[1] == node]] = False
    torch.testing.assert_close(odd[far], usual[far])


def test_features_of_another_width_are_refused(data: Graph) -> None:
    model = zoo.build("gat", features=120, classes=3, num_nodes=400)
    other = data.changed(given_x=torch.ones(400, 7))
    with pytest.raises(InputError, match="7 columns, the network reads 120"):
        predict_new_nodes(model, data, other, replace(CONFIG, row_normalise="never"))
