"""Shared neighbours as an intervention: two who know the same nodes are likely to belong together."""

import torch
from torch import Tensor

from ...graph import overlap
from ...graph.adjacency import Adjacency
from .computed import Computed


class JaccardSimilarity(Computed):
    """Shared neighbours over all neighbours of the two ends, see `conjoint.graph.overlap.jaccard`.

    (Jaccard 1912; as a sign of wrong edges: Wu et al., IJCAI 2019.)
    """

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = True, cap: int = 128) -> None:
        super().__init__(temperature, learn_temperature)
        self.cap = cap

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        return overlap.jaccard(adj.edge_index, adj.num_src, _pairs(adj), cap=self.cap).to(adj.col.device)


class AdamicAdarSimilarity(Computed):
    """Shared neighbours, each counted by how few share it, see `conjoint.graph.overlap.adamic_adar`.

    (Adamic and Adar, Social Networks 2003, here over the length of either neighbourhood.)
    """

    def __init__(self, temperature: float = 8.0, learn_temperature: bool = True, cap: int = 128) -> None:
        super().__init__(temperature, learn_temperature)
        self.cap = cap

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        return overlap.adamic_adar(adj.edge_index, adj.num_src, _pairs(adj), cap=self.cap).to(adj.col.device)


def _pairs(adj: Adjacency) -> Tensor:
    return torch.stack([adj.row, adj.col])
