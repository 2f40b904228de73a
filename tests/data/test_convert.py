"""Graphs that are already in Python."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from conjoint.data import as_graph, from_any, make_split
from conjoint.errors import InputError

EDGES = {"source": ["a", "b", "d"], "target": ["b", "c", "a"], "w": [1.0, 2.0, 3.0]}
NODES = {"id": ["a", "b", "c", "d"], "v": [1.0, 2.0, 4.0, 8.0], "label": ["x", "y", None, "x"]}


def test_pandas_polars_and_networkx_agree() -> None:
    graph: nx.Graph = nx.Graph()
    for name, value, label in zip(*NODES.values(), strict=True):
        graph.add_node(name, v=value, label=label)
    for a, b, weight in zip(*EDGES.values(), strict=True):
        graph.add_edge(a, b, w=weight)
    made = [
        from_any(pl.DataFrame(EDGES), pl.DataFrame(NODES), weight="w"),
        from_any(pd.DataFrame(EDGES), pd.DataFrame(NODES), weight="w"),
        from_any(graph, weight="w"),
    ]
    assert made[0].class_names == ["x", "y"] and made[0].y.tolist() == [0, 1, -1, 0]
    assert made[0].edge_weight is not None
    assert made[0].edge_weight.tolist() == [1, 3, 1, 2, 2, 3]
    assert len({as_graph(data).fingerprint for data in made}) == 1


def test_scipy_with_features_labels_and_ids() -> None:
    matrix = sp.csr_matrix(np.array([[0, 2.0, 0], [2.0, 5.0, 1.0], [0, 0, 0]]))
    data = from_any(matrix, x=sp.eye(3).tocsr(), y=["b", "", "a"], node_ids=[7, 8, 9], sparse=False)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight is not None
    assert data.edge_weight.tolist() == [2, 2, 1, 1]
    assert data.y.tolist() == [1, -1, 0] and data.node_ids.tolist() == [7, 8, 9]
    ones = from_any(matrix.sign(), x=np.eye(3))
    assert ones.edge_weight is None and ones.class_names == []


def test_pyg_data_keeps_masks_as_a_given_split() -> None:
    source = Data(
        x=torch.eye(4),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]),
        y=torch.tensor([[0], [1], [0], [1]]),
        edge_attr=torch.tensor([[1.0], [2.0], [3.0]]),
    )
    for part, nodes in (("train", [0, 1]), ("val", [2]), ("test", [3])):
        source[f"{part}_mask"] = torch.zeros(4, dtype=torch.bool).index_fill(0, torch.tensor(nodes), True)
    data = from_any(source, class_names=["no", "yes"])
    assert data.edge_weight is not None
    assert data.edge_weight.tolist() == [1, 1, 2, 2, 3, 3]
    split = make_split(data, "given")
    assert split.train.tolist() == [0, 1] and split.reveal_test().tolist() == [3]
    assert as_graph(from_any(data)).fingerprint == as_graph(data).fingerprint, (
        "its own form passes through unchanged"
    )


def test_masks_that_overlap_are_set_aside_with_a_note() -> None:
    mask = torch.ones(4, dtype=torch.bool)
    graph = Data(x=torch.eye(4), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1, 0, 1]))
    data = from_any(graph.update({"train_mask": mask, "val_mask": mask, "test_mask": mask}))
    assert data.known_splits == {}
    assert data.notes[0].startswith("the split that came along is not used: split 'given': 4 nodes in both")


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (sp.csr_matrix((2, 3)), {}, r"shape \(2, 3\); it must be square"),
        (sp.csr_matrix((2, 2)), {"x": np.eye(2)}, "no edges between different nodes"),
        (sp.eye(3, k=1).tocsr(), {"x": np.eye(2)}, r"x has shape \(2, 2\); give one row per node \(3\)"),
        (sp.eye(3, k=1).tocsr(), {"x": np.full((3, 1), np.inf)}, "NaN or infinite"),
        (Data(x=torch.eye(2)), {}, "has no edge_index"),
        (pl.DataFrame(EDGES), {"y": [1]}, "go with SciPy or PyG"),
        (pl.DataFrame(EDGES), {"labels": "x"}, "labels= is no argument here"),
        (pl.DataFrame({"a": [], "b": []}), {}, "edges has no rows"),
        (pl.DataFrame({"a": [[1]], "b": [[2]]}), {}, "column 'a' holds lists"),
        (nx.Graph(), {}, "the NetworkX graph has no edges"),
        ([[0, 1]], {}, "a list is no graph known here"),
    ],
)
def test_what_does_not_fit_is_said(graph: Any, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_any(graph, **options)
