"""The peers of research.any_graph: their layers against dense matrices, their rows against the plan."""

import pytest
import torch

from conjoint.graph.adjacency import adjacency
from conjoint.graph.graph import Graph, build_graph
from conjoint.nn.layers import FeatureLinear
from conjoint.training.seeding import build_seeded
from research import classic
from research.any_graph import specs
from research.classic import CONVOLUTIONS, GRID, Classic, Layer, read_peers, tuned


def small_graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    source = torch.randint(60, (240,), generator=generator)
    target = torch.where(torch.rand(240, generator=generator) < 0.8, source // 3 * 3 % 57 + y[source], source)
    x = torch.randn(60, 5, generator=generator) + torch.nn.functional.one_hot(y, 5)
    both = torch.cat([source, target]), torch.cat([target, source])
    return build_graph(both[0].numpy(), both[1].numpy(), labels=y.numpy(), name="small", x=x.numpy())


@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_a_layer_is_its_dense_definition(kind: str) -> None:
    graph = small_graph()
    adj = adjacency(graph.edge_index, graph.num_nodes)
    loops = torch.zeros(60, 60)
    loops[adj.row, adj.col] = 1.0
    layer = build_seeded(lambda: Layer(kind, 5, 4, "none", branch=True), 0)
    assert isinstance(layer.near, FeatureLinear) and layer.near.bias is not None
    assert layer.own is not None and layer.own.bias is not None
    near = graph.x @ layer.near.weight.t() + layer.near.bias
    own = graph.x @ layer.own.weight.t() + layer.own.bias
    if kind == "gcn":
        root = loops.sum(dim=1).rsqrt()
        walk = root[:, None] * loops * root
    else:
        others = loops - torch.eye(60)
        walk = others / others.sum(dim=1, keepdim=True).clamp(min=1.0)
    torch.testing.assert_close(layer(graph.x, adj), walk @ near + own)


def test_only_graphsage_has_a_branch_of_its_own_without_being_asked() -> None:
    assert [Layer(kind, 5, 8, "none", branch=False).own is None for kind in CONVOLUTIONS] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_dense_columns_are_standardised_so_their_scale_means_nothing(kind: str) -> None:
    graph = small_graph()
    adj = adjacency(graph.edge_index, graph.num_nodes)
    again = adjacency(graph.edge_index, graph.num_nodes)
    model = build_seeded(lambda: Classic(kind, 5, 3, 8, 2, "layer", True, 0.5), 0).eval()
    scaled = graph.x * torch.tensor([1.0, 10.0, 0.1, 5.0, 2.0]) + 3.0
    torch.testing.assert_close(model(graph.x, adj), model(scaled, again), rtol=1e-4, atol=1e-5)


def test_validation_chooses_the_setting_and_test_labels_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic, "EPOCHS", 12)
    graph = small_graph()
    split = graph.split("fraction", seed=0)
    scrambled = graph.y.clone()
    test = split.reveal_test()
    scrambled[test] = (scrambled[test] + 1) % 3
    blind = build_graph(*graph.edge_index.numpy(), labels=scrambled.numpy(), name="small", x=graph.x.numpy())
    (seen, number), (_, same) = tuned("sage", graph, split, 0), tuned("sage", blind, split, 0)
    assert number == same and 0 <= number < len(GRID)
    assert 0.0 <= seen["accuracy"] <= 1.0


def test_every_row_is_one_of_the_plan_and_stands_once() -> None:
    keys = [(row["graph"], row["setting"], row["split"]) for row in read_peers()]
    assert len(set(keys)) == len(keys) and set(keys) <= set(specs(10))
    for row in read_peers():
        titles = {f"classic {kind}" for kind in CONVOLUTIONS}
        assert set(row["test"]) == set(row["chosen"]) == set(row["seconds"]) == titles
        assert all(0 <= number < len(GRID) for number in row["chosen"].values())
