"""MoNet: neighbours weighed by learnt Gaussians of the two nodes' degrees."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GMMConv

from ...graph.adjacency import Adjacency, adjacency
from .. import ops
from ..model import NodeModel
from .layers import Rows, dropped, project
from .settings import Settings


@dataclass(frozen=True, eq=False)
class DegreeGraph:
    adj: Adjacency
    coordinates: Tensor  # [entries, 2]: 1 / sqrt(degree) of listener and speaker

    def to(self, device: torch.device | str) -> "DegreeGraph":
        return DegreeGraph(self.adj.to(device), self.coordinates.to(device))


class GaussianConvolution(GMMConv):
    """sum_k sum_j w_k(u_ij) x_j W_k + b, w_k a Gaussian that is scaled to sum to 1 over each neighbourhood.

    The scaling is not in the paper but in its authors' code; without it hubs drown their neighbours. It makes
    w_k a softmax of the Gaussian's exponent. The parameters are PyG's. The kernels are the heads of one
    aggregation, so that no tensor of entries x kernels x channels is made.
    """

    def __init__(self, in_channels: int, out_channels: int, kernels: int) -> None:
        super().__init__(in_channels, out_channels, dim=2, kernel_size=kernels, aggr="add", root_weight=False)
        # Coordinates lie in (-1, 1): spread the kernels over it, each wide enough to see all neighbours.
        centres = (torch.arange(kernels, device=self.mu.device) + 0.5) * 2.0 / kernels - 1.0
        self.mu.data.copy_(centres.unsqueeze(1).expand_as(self.mu))
        nn.init.ones_(self.sigma)

    def forward(self, x: Rows, adj: Adjacency, coordinates: Tensor) -> Tensor:
        offset = (coordinates.unsqueeze(1) - self.mu).square() / (self.sigma.square() + 1e-14)
        weight = ops.edge_softmax(adj, -0.5 * offset.sum(dim=-1))  # [entries, kernels]
        projected = project(x, self.g.t()).view(-1, self.kernel_size, self.out_channels)
        return ops.aggregate(adj, weight, projected).sum(dim=1) + self.bias


@dataclass(frozen=True)
class MoNetSettings(Settings):
    hidden: int = 16
    kernels: int = 3
    dropout: float = 0.5


class MoNet(NodeModel):
    """Monti et al., CVPR 2017, with the coordinates of its citation experiments: tanh(A u + b) of
    u_ij = (1 / sqrt(deg i), 1 / sqrt(deg j)). The degree stands for the graph; edge weights are not read."""

    def __init__(self, features: int, classes: int, settings: MoNetSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or MoNetSettings()
        self.convs = nn.ModuleList(
            [
                GaussianConvolution(features, s.hidden, s.kernels),
                GaussianConvolution(s.hidden, classes, s.kernels),
            ]
        )
        self.places = nn.ModuleList(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(2))

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> DegreeGraph:
        adj = adjacency(edge_index, num_nodes)
        root = adj.degree.to(torch.get_default_dtype()).rsqrt()
        return DegreeGraph(adj, torch.stack([root[adj.row], root[adj.col]], dim=1))

    def embed(self, x: Tensor, graph: DegreeGraph) -> Tensor:
        return self._layer(0, x, graph).relu()

    def forward(self, x: Tensor, graph: DegreeGraph) -> Tensor:
        return self._layer(1, self.embed(x, graph), graph)

    def _layer(self, layer: int, x: Tensor, graph: DegreeGraph) -> Tensor:
        place = self.places[layer](graph.coordinates)
        return self.convs[layer](dropped(self, x, self.settings.dropout), graph.adj, place)
