"""A graph, a split and a model small enough to train in milliseconds, shared by the tests of training."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.graph.field import Field
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split, build_split
from conjoint.nn.model import NodeModel
from conjoint.training.runs import ModelSpec
from conjoint.training.seeding import build_seeded
from graphs import random_graph

NODES, FEATURES, CLASSES = 60, 12, 3
SPEC = ModelSpec("mean-model", FEATURES, CLASSES, NODES, {"hidden": 5})


class MeanModel(NodeModel):
    """Two rounds of averaging over neighbours, dropout between them, and a penalty on a row per node."""

    reach: int | None = 2

    def __init__(
        self, features: int, hidden: int, classes: int, num_nodes: int, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.second = nn.Linear(hidden, classes)
        self.rows = nn.Parameter(torch.randn(num_nodes, 2) * 0.1)
        self.unused = nn.Parameter(torch.zeros(2))
        self.dropout = dropout

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        return adjacency(edge_index, num_nodes)

    def embed(self, x: Tensor, graph: Any) -> Tensor:
        layers = graph.layers if isinstance(graph, Field) else (graph, graph)
        hidden = torch.relu(self.norm(_mean(layers[0], self.first(x))))
        return nn.functional.dropout(hidden, self.dropout, self.training)

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        last = graph.layers[1] if isinstance(graph, Field) else graph
        return _mean(last, self.second(self.embed(x, graph)))

    def penalty(self, graph: Any) -> Tensor:
        return (self.rows[graph.row] - self.rows[graph.col]).square().sum(0).sum() + (self.rows**2).sum(
            0
        ).sum()

    def structural_parameters(self) -> list[nn.Parameter]:
        return [self.rows]


class WholeModel(MeanModel):
    """The same, for those who cannot work on a part of the graph."""

    reach = None


def _mean(adj: Adjacency, x: Tensor) -> Tensor:
    total = x.new_zeros(adj.num_dst, x.size(1)).index_add(0, adj.row, x[adj.col])
    return total / adj.degree.unsqueeze(1)


def build(
    name: str, *, features: int, classes: int, num_nodes: int, seed: int | None = None, **settings: Any
) -> NodeModel:
    """Stands in for the zoo."""
    return build_seeded(lambda: MeanModel(features, settings["hidden"], classes, num_nodes), seed or 0)


def small_model(seed: int = 0, dropout: float = 0.3) -> MeanModel:
    return build_seeded(lambda: MeanModel(FEATURES, 5, CLASSES, NODES, dropout), seed)


def small_data() -> Graph:
    """Three classes whose features and edges both tell them apart, not perfectly."""
    rng = np.random.default_rng(0)
    y = np.arange(NODES) % CLASSES
    x = rng.random((NODES, FEATURES)) + 0.6 * (np.arange(FEATURES)[None, :] % CLASSES == y[:, None])
    edges, _ = random_graph(NODES, 90, seed=1)
    same = torch.from_numpy(y)[edges[0]] == torch.from_numpy(y)[edges[1]]
    keep = same | (torch.arange(edges.size(1)) % 7 == 0)
    edges = torch.cat([edges[:, keep], edges[:, keep].flip(0)], dim=1).unique(dim=1)
    ids = np.array([f"node {i}" for i in range(NODES)])
    features, labels = torch.from_numpy(x).float(), torch.from_numpy(y)
    return Graph(features, labels, edges, ids=ids, class_names=["a", "b", "c"], name="small")


def small_split() -> Split:
    order = np.random.default_rng(3).permutation(NODES)
    labels = small_data().y.numpy()
    return build_split(order[:12], order[12:30], order[30:], labels=labels, name="small", seed=3)


def same_weights(one: NodeModel, other: NodeModel) -> bool:
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
