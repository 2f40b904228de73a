"""GCN on a cleaned graph: the low-rank product against a dense one; no edges between unlike nodes."""

import numpy as np
import pytest
import torch
from torch import Tensor

from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.overlap import edge_jaccard
from conjoint.nn import zoo
from conjoint.nn.baselines import GCNSVD, low_rank_graph

NODES = 24


@pytest.fixture
def edge_index() -> Tensor:
    pairs = torch.from_numpy(np.random.default_rng(4).integers(0, NODES, (2, 50)))
    pairs = pairs[:, pairs[0] != pairs[1]]
    return torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1)


def dense(edge_index: Tensor, rank: int) -> np.ndarray:
    """D^-1/2 (A_k + I) D^-1/2 as a matrix."""
    a = np.zeros((NODES, NODES))
    a[edge_index[1].numpy(), edge_index[0].numpy()] = 1.0
    u, s, vt = np.linalg.svd(a)
    near = u[:, :rank] @ np.diag(s[:rank]) @ vt[:rank] + np.eye(NODES)
    degree = np.maximum(near.sum(axis=1), 1.0)
    return near / np.sqrt(np.outer(degree, degree))


@pytest.mark.parametrize("rank", [2, 5, 20, NODES, 99])
def test_gathering_on_factors_is_gathering_on_the_low_rank_matrix(rank: int, edge_index: Tensor) -> None:
    x = torch.from_numpy(np.random.default_rng(5).standard_normal((NODES, 3))).float()
    graph = low_rank_graph(edge_index, NODES, rank)
    expected = torch.from_numpy(dense(edge_index, min(rank, NODES))).float() @ x
    torch.testing.assert_close(graph.gather(x), expected, rtol=1e-4, atol=1e-5)


def test_nothing_of_nodes_by_nodes_is_kept(edge_index: Tensor) -> None:
    graph = low_rank_graph(edge_index, NODES, 3)
    assert {tuple(part.shape) for part in vars(graph).values()} == {(NODES, 3), (NODES, 1)}


def test_the_factors_of_a_graph_are_computed_once(edge_index: Tensor) -> None:
    model = GCNSVD(4, 2, rank=3)
    first = model.prepare(edge_index, NODES)
    assert model.prepare(edge_index, NODES) is first
    edge_index[0, 0] = (edge_index[0, 0] + 1) % NODES
    assert model.prepare(edge_index, NODES) is not first


@pytest.mark.parametrize("name", ["gcn-jaccard", "gat-jaccard"])
def test_pruned_models_read_only_edges_between_like_nodes(name: str, edge_index: Tensor) -> None:
    x = torch.from_numpy((np.random.default_rng(6).random((NODES, 9)) < 0.2).astype(np.float32))
    weight = torch.arange(1.0, edge_index.size(1) + 1.0)
    data = Graph(x, torch.zeros(NODES, dtype=torch.long), edge_index, edge_weight=weight)
    keep = edge_jaccard(x, edge_index) >= 0.2
    assert 0 < int(keep.sum()) < edge_index.size(1)
    made = zoo.input_graph(name, data, threshold=0.2)
    assert made.edge_weight is not None
    assert torch.equal(made.edge_index, edge_index[:, keep]) and torch.equal(made.edge_weight, weight[keep])
    assert data.edge_index is edge_index  # the user's graph is left as it was
    assert torch.equal(zoo.input_graph(name, data, threshold=0.0).edge_index, edge_index)
    assert zoo.input_graph("gcn", data) is data


def test_a_threshold_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match=r"threshold: 1\.5"):
        zoo.build("gcn-jaccard", features=3, classes=2, num_nodes=4, threshold=1.5)
