"""The graphs of the benchmark: two of the paper's, one of OGB-Arxiv's shape, random ones of any size."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from conjoint.data import load_graph, make_split
from conjoint.errors import InputError
from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.graph.sparse import row_normalise

ARXIV = {"nodes": 169_343, "edges": 1_157_799, "features": 128, "classes": 40, "train": 90_941}


@dataclass(frozen=True)
class Case:
    """A graph to train on, and the width of the network: heads x hidden, then heads x classes."""

    name: str
    x: Tensor  # [nodes, features], dense or sparse CSR
    edge_index: Tensor
    y: Tensor
    train: Tensor
    heads: int = 8
    hidden: int = 8
    out_heads: int = 1

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def dense_x(self) -> Tensor:
        return self.x.to_dense() if self.x.layout == torch.sparse_csr else self.x

    @cached_property
    def graph(self) -> Adjacency:
        """The edges sorted both ways: part of loading, not of a step."""
        made = adjacency(self.edge_index, self.x.size(0))
        assert made.transposed.row.numel() == made.simple.numel()
        return made


def planetoid(name: str) -> Case:
    """Cora or Pubmed with the public split; CONJOINT_DATA names the folder with the raw files."""
    data = load_graph(name, sparse=True)
    split = make_split(data, "public")
    return Case(name, row_normalise(data.x), data.edge_index, data.y, split.train)


def arxiv_shaped(hidden: int, seed: int = 0) -> Case:
    """OGB-Arxiv's size with its real edges where they are at hand, else random ones; features are random."""
    generator = torch.Generator().manual_seed(seed)
    nodes = ARXIV["nodes"]
    try:
        edges = load_graph("ogbn-arxiv", features="degree:1", download=False).edge_index
    except InputError:
        edges = both_ways(torch.randint(nodes, (2, ARXIV["edges"]), generator=generator))
    x = torch.randn(nodes, ARXIV["features"], generator=generator)
    y = torch.randint(ARXIV["classes"], (nodes,), generator=generator)
    train = torch.randperm(nodes, generator=generator)[: ARXIV["train"]]
    return Case(f"arxiv-shaped 3x{hidden}", x, edges, y, train, heads=3, hidden=hidden, out_heads=3)


def random_case(edges: int, seed: int = 0) -> Case:
    """A random graph with ten edges per node, for cost against size."""
    generator = torch.Generator().manual_seed(seed)
    nodes = max(10, edges // 10)
    ends = both_ways(torch.randint(nodes, (2, edges // 2), generator=generator))
    x = torch.randn(nodes, 32, generator=generator)
    y = torch.randint(8, (nodes,), generator=generator)
    return Case(f"random {edges:.0e}", x, ends, y, torch.arange(nodes // 2), heads=4, hidden=8)


def both_ways(edges: Tensor) -> Tensor:
    return torch.cat([edges, edges.flip(0)], dim=1)


CASES = {
    "cora": lambda: planetoid("cora"),
    "pubmed": lambda: planetoid("pubmed"),
    "arxiv-64": lambda: arxiv_shaped(64),
    "arxiv-256": lambda: arxiv_shaped(256),
}
