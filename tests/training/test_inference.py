"""Inference in pieces gives the numbers of the whole graph in memory, in bounded memory."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.nn.zoo import build
from conjoint.training import TrainConfig, inference, predict_proba
from conjoint.training.inference import _needed, _pieces, infer
from scale_runs import CLASSES, FEATURES, NODES, graph_and_split

SIZES = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES, "seed": 1}


@pytest.mark.parametrize("name", ["cat-i-mf", "cat-e-sc", "cat-i-fs", "gat", "mf-only"])
@pytest.mark.parametrize("entries", [1, 60, 1 << 20])
def test_equal_to_the_full_graph(
    name: str, entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = graph_and_split()
    model = build(name, **SIZES, num_layers=3, norm="batch", residual=True)
    with torch.no_grad():
        model(data.x, model.prepare(data.edge_index, NODES))  # running statistics that are not the first ones
    whole = predict_proba(model, data, TrainConfig())
    monkeypatch.setattr(inference, "IN_MEMORY_BYTES", 0)  # hidden units in a file
    pieces = list(infer(model, as_graph(data), entries=entries, scratch=tmp_path))
    assert np.array_equal(np.concatenate([ids for ids, _ in pieces]), np.arange(NODES))
    found = torch.cat([logits for _, logits in pieces]).softmax(1)
    assert torch.allclose(found, whole, atol=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_some_nodes_cost_only_what_they_depend_on() -> None:
    data, split = graph_and_split()
    graph, model = as_graph(data), build("cat-i-mf", **SIZES)
    wanted = np.sort(split.val.numpy()[:3])
    whole = predict_proba(model, data, TrainConfig())
    found = list(infer(model, graph, wanted))
    assert torch.allclose(torch.cat([f for _, f in found]).softmax(1), whole[wanted], atol=1e-6)
    needed = _needed(graph, wanted, 2)
    assert needed[0] is not None and len(needed[0]) < NODES


def test_pieces_hold_few_entries() -> None:
    graph = as_graph(graph_and_split()[0])
    pieces = list(_pieces(graph, None, 50))
    assert np.array_equal(np.concatenate(pieces), np.arange(NODES))
    sizes = [int((graph.degree[ids] + 1).sum()) for ids in pieces]
    assert max(sizes) <= 50 and min(sizes[:-1]) > 50 - (graph.degree.max() + 1)


def test_other_models_are_refused_in_one_line() -> None:
    data, _ = graph_and_split()
    with pytest.raises(InputError, match="GCN or its intervention needs the whole graph"):
        next(infer(build("gcn", **SIZES), as_graph(data)))


def test_networks_that_go_on_along_the_edges_are_not_cut() -> None:
    assert inference.attention_network(build("gat", **SIZES)).reach == 2
    for model in (build("gat", **SIZES, propagate=2), build("gcn", **SIZES)):
        with pytest.raises(InputError, match="needs the whole graph; use --batch full"):
            inference.attention_network(model)


@pytest.mark.parametrize("entries", [1, 7, 60, 1 << 20])
def test_pieces_are_as_many_nodes_as_fit_and_never_none(entries: int) -> None:
    graph = as_graph(graph_and_split()[0])
    for nodes in (None, np.arange(0, NODES, 3)):
        pieces, size = list(_pieces(graph, nodes, entries)), graph.degree + 1
        assert np.array_equal(np.concatenate(pieces), np.arange(NODES) if nodes is None else nodes)
        assert all(len(ids) == 1 or (len(ids) and size[ids].sum() <= entries) for ids in pieces)
        for ids, following in pairwise(pieces):  # the next one did not fit
            assert size[ids].sum() + size[following[0]] > entries
