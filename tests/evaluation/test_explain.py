"""Why a prediction: changes are those of the model without the edge or feature; attention is its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from conjoint import CAT, InputError, MatrixFactorization
from conjoint.evaluation import occlusion
from conjoint.evaluation.explain import Why, as_document, attention_of, explain
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split
from conjoint.nn.ensemble import Ensemble, MemberInfo
from conjoint.nn.model import NodeModel
from conjoint.nn.zoo import build
from conjoint.training import TrainConfig
from conjoint.training.closed_form import fit_closed_form
from conjoint.training.predictions import predict_proba
from graphs import random_graph
from small_training import CLASSES, FEATURES, NODES, small_data

DATA = small_data().changed(edges=random_graph(NODES, 150, seed=5)[0])
CONFIG = TrainConfig(row_normalise="never")
SIZES: dict[str, Any] = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES, "seed": 0}


def network(**more: Any) -> CAT:
    torch.manual_seed(0)
    return CAT(FEATURES, 4, CLASSES, heads=2, intervention=MatrixFactorization(NODES, 3), **more)


def shares(model: NodeModel, graph: Graph = DATA) -> npt.NDArray[Any]:
    return predict_proba(model, graph, CONFIG).numpy()


def ensemble() -> Ensemble:
    """Attention, logistic regression over hops, label propagation: some reach two hops, one reaches all."""
    nodes = torch.arange(0, NODES, 2)
    split = Split(nodes, nodes + 1, "half")
    simple = [
        fit_closed_form("logistic", {"hops": "012"}, DATA, split, CONFIG)[0].model,
        fit_closed_form("label-propagation", {}, DATA, split, CONFIG)[0].model,
    ]
    infos = [MemberInfo("cat", 0.5, True), MemberInfo("linear", 0.3, False), MemberInfo("labels", 0.2, False)]
    return Ensemble([network(), *simple], infos, temperature=0.8).eval()


def without_edge(a: int, b: int) -> Graph:
    source, target = DATA.edge_index
    gone = ((source == a) & (target == b)) | ((source == b) & (target == a))
    assert gone.any()
    return DATA.changed(edges=DATA.edge_index[:, ~gone])


def why(model: NodeModel, node: int, graph: Graph = DATA, **more: Any) -> Why:
    return explain(model, graph, CONFIG, node, shares(model, graph), **more)


@pytest.mark.parametrize("make", [network, ensemble])
def test_a_change_is_that_of_the_whole_model_on_the_graph_without_the_edge(make: Any) -> None:
    model, node = make(), 7
    found = why(model, node)
    assert found.on_part == pytest.approx(found.probability, abs=1e-6)
    assert len(found.neighbours) > 2 and len(found.paths) > 4
    for effect in (*found.neighbours, *found.paths[:6]):
        a, b = (node, *effect.nodes)[-2:]
        truth = shares(model, without_edge(a, b))[node, found.predicted] - found.probability
        assert effect.change == pytest.approx(truth, abs=1e-5)
    assert max(abs(effect.change) for effect in found.neighbours) > 1e-3
    assert {len(effect.nodes) for effect in found.paths} == {2, 3}
    edges = [frozenset((node, *effect.nodes)[-2:]) for effect in (*found.neighbours, *found.paths)]
    assert len(set(edges)) == len(edges)


def test_a_feature_is_replaced_by_its_mean() -> None:
    model, node = ensemble(), 7
    found = why(model, node)
    assert len(found.features) == FEATURES
    for effect in found.features[:3]:
        column = int(effect.feature.removeprefix("feature "))
        assert effect.value == pytest.approx(float(DATA.x[node, column]))
        x = DATA.x.clone()
        x[node, column] = x[:, column].mean()
        # The network's own scaling of columns belongs to the graph that it was trained on.
        truth = shares(model, DATA.changed(given_x=x))[node, found.predicted] - found.probability
        assert effect.change == pytest.approx(truth, abs=1e-5)
    assert found.featureless is not None and found.featureless != found.on_part


def test_sparse_features_are_taken_away() -> None:
    dense = torch.where(DATA.x > 0.8, DATA.x, 0.0)
    graph, node = DATA.changed(given_x=dense.to_sparse_csr()), 7
    model = build("gat", **SIZES)
    found = why(model, node, graph)
    assert len(found.features) == int((dense[node] != 0).sum()) > 0
    column = int(found.features[0].feature.removeprefix("feature "))
    dense = dense.clone()
    dense[node, column] = 0.0
    other = DATA.changed(given_x=dense.to_sparse_csr())
    truth = shares(model, other)[node, found.predicted] - found.probability
    assert found.features[0].change == pytest.approx(truth, abs=1e-5)


def test_members_are_weighed_as_the_ensemble_weighs_them() -> None:
    model = ensemble()
    found = why(model, 3)
    assert [one.name for one in found.members] == ["cat", "linear", "labels"]
    mean = sum(one.weight * one.for_class for one in found.members)
    assert 0.0 < mean < 1.0
    rest = Ensemble([m for _, m in model.each()][1:], model.infos[1:], model.temperature).eval()
    truth = shares(rest)[3, found.predicted] - found.probability
    assert found.members[0].change == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["gcn", "cat-i-smooth", "rescat-e-spectral", "spread-trust", "resmlp", "cat-e-sc"]
)
def test_every_kind_of_model_is_explained_and_left_as_it_was(name: str) -> None:
    """The part is the whole component here, so the model says there what it says on the whole graph."""
    model = build(name, **SIZES).eval()
    before = shares(model)
    found = why(model, 11)
    assert found.bounds["whole_component"]
    assert found.on_part == pytest.approx(found.probability, abs=1e-5)
    np.testing.assert_array_equal(shares(model), before)
    assert bool(found.attention) == (name not in ("gcn", "resmlp"))


def test_trees_read_the_labels_of_the_part() -> None:
    nodes = torch.arange(0, NODES, 2)
    split = Split(nodes, nodes + 1, "half")
    model = fit_closed_form("boosting", {}, DATA, split, CONFIG)[0].model
    before = shares(model)
    for node in (4, 11, 20):
        found = why(model, node)
        assert found.bounds["whole_component"]
        assert found.on_part == pytest.approx(found.probability, abs=1e-5)
    np.testing.assert_array_equal(shares(model), before)


def test_a_smaller_part_may_be_asked_for() -> None:
    found = why(network(), 7, around=8)
    assert found.bounds["sampled"] and found.bounds["nodes"] == 8


def test_a_part_is_exact_for_what_reaches_less_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occlusion, "USUAL_NODES", 5)
    found = why(network(), 7)
    assert found.bounds["hops"] == 2 and not found.bounds["whole_component"]
    assert found.on_part == pytest.approx(found.probability, abs=1e-6)


def test_a_hub_is_sampled_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occlusion, "MOST_NODES", 8)
    found = why(network(), 7)
    assert found.bounds["sampled"] and found.bounds["nodes"] == 8
    assert found.on_part != found.probability


def test_the_number_of_removals_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = occlusion.Occlusion.ask

    def counted(self: occlusion.Occlusion, removals: Sequence[occlusion.Removal]) -> torch.Tensor:
        asked.append(len(removals))
        return ask(self, removals)

    monkeypatch.setattr(occlusion.Occlusion, "ask", counted)
    found = why(network(), 7, most=8)
    assert sum(asked) <= 8 + 3 + 4  # the three of all kinds, and groups of features before single ones
    assert found.bounds["features"] == [4, FEATURES]
    assert len(found.neighbours) == 4 < found.bounds["neighbours"][1]


def test_attention_is_that_of_the_network() -> None:
    model = network()
    whole = attention_of(model, DATA, CONFIG)
    for node in (0, 17, 59):
        found, last = why(model, node), why(model, node, layer=2)
        assert node in found.listens_to
        for part in ("feature", "structural", "conjoint"):
            values = [getattr(one, part).double() for one in whole]
            means = [one.mean(dim=1) if one.dim() == 2 else one for one in values]
            for k, source in enumerate(found.listens_to):
                here = (whole[0].edge_index[0] == source) & (whole[0].edge_index[1] == node)
                expected = float(sum(one[here].sum() for one in means)) / len(means)
                assert found.attention[part][k] == pytest.approx(expected, abs=1e-6)
            assert sum(last.attention[part]) == pytest.approx(1.0, abs=1e-6)
        assert list(found.attention["conjoint"]) == sorted(found.attention["conjoint"], reverse=True)


def test_parallel_edges_count_as_one() -> None:
    twice = DATA.changed(edges=torch.cat([DATA.edge_index, DATA.edge_index], dim=1))
    found = why(network(), 3, twice)
    assert len(set(found.listens_to)) == len(found.listens_to)
    assert sum(found.attention["conjoint"]) == pytest.approx(1, abs=1e-6)


def test_equal_parts_of_attention_are_told_once() -> None:
    assert set(why(build("gat", **SIZES), 0).attention) == {"conjoint"}
    assert set(why(build("spread-trust", **SIZES), 0).attention) == {"conjoint"}
    with pytest.raises(InputError, match="layers 1 to 2"):
        why(network(), 3, layer=3)
    with pytest.raises(InputError, match="node 99"):
        explain(network(), DATA, CONFIG, 99, shares(network()))


def test_categories_of_a_column_are_one_feature() -> None:
    names = [f"f{k}" for k in range(9)] + ["team=a", "team=b", "team=c"]
    x = DATA.x.clone()
    x[:, 9:] = torch.eye(3)[torch.arange(NODES) % 3]
    graph = DATA.changed(given_x=x, feature_names=names)
    found = {one.feature: one for one in why(network(), 7, graph).features}
    assert "team=b" in found and len(found) == 10


def test_the_document_names_nodes_and_classes() -> None:
    model, names = network(), [f"name {k}" for k in range(NODES)]
    graph = DATA.changed(ids=np.array([f"id-{k}" for k in range(NODES)]))
    found = as_document(why(model, 7), graph, ["a", "b", "c"], shares(model), names)
    assert found["node"] == "id-7" and found["name"] == "name 7"
    near = set(DATA.edge_index[0][DATA.edge_index[1] == 7].tolist())
    rows = {row["id"] for row in found["neighbours"]}
    assert rows == {f"id-{k}" for k in near | {7}}
    assert all(len(layer["conjoint"]) == len(rows) for layer in found["attention"][0]["layers"])
    path = found["paths"][0]["path"]
    assert len(path) >= 2 and path[0]["name"] == "name " + path[0]["id"].removeprefix("id-")
