"""The networks that conjoint attention is compared with, made of PyG's layers.

A graph is prepared once (self-loops, normalisation) as a `WeightedGraph`, whose `gather` stands in for a
layer's `propagate`: the project's own aggregation instead of one message per edge. `FeatureLinear` stands in
for a layer's linear map where its input may be sparse. Parameters and their names are PyG's.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import svds
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ..errors import InputError
from ..graph.adjacency import Adjacency, adjacency
from . import checks, names, ops
from .layers import BatchNorm, FeatureLinear, Rows, dropped, project
from .model import NodeModel, Recent


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """Node i receives the sum of weight_e * x_j over its entries e = (i, j)."""

    adj: Adjacency
    weight: Tensor  # [entries, 1]

    def gather(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """One step of message passing, without messages; `dropout` is on entries. [nodes, f] -> [nodes, f]"""
        seed = ops.draw_seed(x.device) if dropout > 0.0 else None
        return ops.aggregate(self.adj, self.weight, x.unsqueeze(1), None, dropout, seed).squeeze(1)


def symmetric(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, *, self_loops: bool = True
) -> WeightedGraph:
    """D^-1/2 A D^-1/2, A with self-loops (GCN, SGC, APPNP) or without (ARMA)."""
    edges, weight = gcn_norm(edge_index, edge_weight, num_nodes, add_self_loops=self_loops)
    return total(edges, num_nodes, weight)


def mean(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """D^-1 A: the (weighted) mean of the neighbours, 0 for a node without any (GraphSAGE)."""
    weight = _ones(edge_index) if edge_weight is None else edge_weight.view(-1)
    degree = weight.new_zeros(num_nodes).index_add(0, edge_index[1], weight)
    return total(edge_index, num_nodes, weight / degree[edge_index[1]])


def total(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> WeightedGraph:
    """A as it is: the sum of the neighbours (GIN)."""
    adj = adjacency(edge_index, num_nodes, self_loops=False)
    weight = _ones(edge_index) if edge_weight is None else edge_weight
    return WeightedGraph(adj, weight.view(-1, 1)[adj.perm])


def _ones(edge_index: Tensor) -> Tensor:
    return torch.ones(edge_index.size(1), device=edge_index.device)


def weighted_sum(self: Any, edge_index: WeightedGraph, size: Any = None, **tensors: Any) -> Tensor:
    """`MessagePassing.propagate` for layers whose message is weight * x_j and whose aggregation is a sum.

    It is assigned in the body of each class: PyG replaces an inherited `propagate` by a generated one.
    """
    x = tensors["x"]
    return edge_index.gather(x[0] if isinstance(x, tuple) else x)


class GraphConvolution(pyg.GCNConv):
    """GCNConv on a graph that is normalised already; its input may be sparse."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, normalize=False)
        self.lin = FeatureLinear(in_channels, out_channels, bias=False, weight_initializer="glorot")

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        narrow = isinstance(x, Tensor) and x.layout == torch.strided and self.in_channels < self.out_channels
        if narrow:  # fewer columns to gather before the product than after it
            return self.lin(self.propagate(graph, x=x)) + self.bias
        return super().forward(x, graph)


class MeanConvolution(pyg.SAGEConv):
    """W_l mean_j(x_j) + W_r x_i + b. W_l comes before the mean: the same product on fewer, dense columns."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = FeatureLinear(in_channels, out_channels, bias=False)
        self.lin_r = FeatureLinear(in_channels, out_channels, bias=True)

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        return self.propagate(graph, x=self.lin_l(x)) + self.lin_r(x)


class Isomorphism(pyg.GINConv):
    """GINConv: (1 + eps) x_i + the sum of the neighbours, then the given network."""

    propagate = weighted_sum


class ARMAConvolution(pyg.ARMAConv):
    """X_{t+1} = act(S X_t W + dropout(X_0) V + b), averaged over stacks, which are columns side by side."""

    propagate = weighted_sum

    def __init__(self, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(in_channels, out_channels, **options)
        if self.num_layers == 1:
            self.register_parameter("weight", None)  # PyG keeps one that a single step never reads

    def forward(self, x: Rows, graph: WeightedGraph) -> Tensor:
        stacks, width = self.num_stacks, self.out_channels
        out = project(x, _side_by_side(self.init_weight))  # [nodes, stacks * out]
        for t in range(self.num_layers):
            if t > 0:
                weight = self.weight[0 if self.shared_weights else t - 1]
                out = torch.einsum("nki,kij->nkj", out.view(-1, stacks, width), weight).flatten(1)
            shared = 0 if self.shared_weights else t
            skip = project(dropped(self, x, self.dropout), _side_by_side(self.root_weight[shared]))
            out = self.propagate(graph, x=out) + skip
            if self.bias is not None:
                out = out + self.bias[shared].reshape(-1)
            if self.act is not None:
                out = self.act(out)
        return out.view(-1, stacks, width).mean(dim=1)


def _side_by_side(weight: Tensor) -> Tensor:
    """[stacks, in, out] -> [stacks * out, in]"""
    return weight.transpose(1, 2).flatten(0, 1)


class GaussianConvolution(pyg.GMMConv):
    """sum_k sum_j w_k(u_ij) x_j W_k + b, w_k a Gaussian that is scaled to sum to 1 over each neighbourhood.

    The scaling is not in the paper but in its authors' code; without it hubs drown their neighbours. It makes
    w_k a softmax of the Gaussian's exponent. The kernels are the heads of one aggregation, so that no tensor
    of entries x kernels x channels is made.
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


class Baseline(NodeModel):
    """Layers on the normalised graph, dropout before each, ReLU between; subclasses change some of that."""

    usual: ClassVar[dict[str, Any]] = names.BODIES["gcn"].settings
    convolution: type[nn.Module] = GraphConvolution
    graph: Callable[..., Any] = staticmethod(symmetric)  # (edge_index, num_nodes, edge_weight)

    def __init__(self, features: int, classes: int, **settings: Any) -> None:
        super().__init__()
        self.settings = SimpleNamespace(**checks.settings(type(self).__name__, self.usual, settings))
        self.make(features, classes, self.settings)

    def make(self, features: int, classes: int, s: Any) -> None:
        widths = pairwise([features, *[s.hidden] * (s.num_layers - 1), classes])
        self.convs = nn.ModuleList(self.convolution(wide, narrow) for wide, narrow in widths)

    @property
    def form(self) -> Hashable:  # type: ignore[override]
        return self.graph

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Any:
        return self.graph(edge_index, num_nodes, edge_weight)

    def embed(self, x: Tensor, graph: Any) -> Tensor:
        for k in range(len(self.convs) - 1):
            x = self.layer(k, x, graph).relu()
        return x

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        return self.layer(len(self.convs) - 1, self.embed(x, graph), graph)

    def layer(self, k: int, x: Tensor, graph: Any) -> Tensor:
        return self.convs[k](self.drop(x), graph)

    def drop(self, x: Tensor) -> Any:
        return dropped(self, x, self.settings.dropout)


class GCN(Baseline):
    """Kipf and Welling, ICLR 2017: H' = ReLU(D^-1/2 (A + I) D^-1/2 H W), dropout before every layer."""


class SAGE(Baseline):
    """Hamilton et al., NeurIPS 2017, whole neighbourhoods instead of samples."""

    convolution = MeanConvolution
    graph = staticmethod(mean)


class JKNet(Baseline):
    """Xu et al., ICML 2018: each GCN layer's output jumps to the end, where one linear map reads them all."""

    usual = names.BODIES["jknet"].settings

    def make(self, features: int, classes: int, s: Any) -> None:
        checks.one_of("mode", s.mode, ("cat", "max"))
        super().make(features, s.hidden, s)
        self.jump = pyg.JumpingKnowledge(s.mode)
        self.read = FeatureLinear(s.hidden * (s.num_layers if s.mode == "cat" else 1), classes)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        outputs = []
        for k in range(len(self.convs)):
            x = self.layer(k, x, graph).relu()
            outputs.append(x)
        return self.jump(outputs)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.read(self.drop(self.embed(x, graph)))


class GIN(Baseline):
    """Xu et al., ICLR 2019: MLP((1 + eps) x_i + sum of x_j), the MLP two linear maps with batch norm between.

    The MLP's first map is taken before the sum, where it reads sparse rows and leaves fewer columns to add;
    its bias comes after the sum, or not at all where batch norm would cancel it. `mlp_layers=1`: one map.
    """

    usual = names.BODIES["gin"].settings
    graph = staticmethod(total)

    def make(self, features: int, classes: int, s: Any) -> None:
        checks.one_of("norm", s.norm, ("batch", "none"))
        checks.one_of("mlp_layers", str(s.mlp_layers), ("1", "2"))
        hidden = [s.hidden] * (s.num_layers - 1)
        inputs, outputs = [features, *hidden], [*hidden, classes]
        widths = zip(inputs, outputs if s.mlp_layers == 1 else [s.hidden] * s.num_layers, strict=True)
        self.firsts = nn.ModuleList(FeatureLinear(wide, narrow, bias=False) for wide, narrow in widths)
        rests = (_after_the_sum(width, s) for width in outputs)
        self.convs = nn.ModuleList(Isomorphism(rest, train_eps=s.train_eps) for rest in rests)

    def layer(self, k: int, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.convs[k](self.firsts[k](self.drop(x)), graph)


def _after_the_sum(width: int, settings: Any) -> nn.Module:
    if settings.mlp_layers == 1:
        return Bias(width)
    middle = BatchNorm(settings.hidden) if settings.norm == "batch" else Bias(settings.hidden)
    return nn.Sequential(middle, nn.ReLU(), nn.Linear(settings.hidden, width))


class Bias(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias


class ARMA(Baseline):
    """Bianchi et al., TPAMI 2021: two ARMA layers of T = `num_layers` steps each."""

    usual = names.BODIES["arma"].settings
    graph = staticmethod(partial(symmetric, self_loops=False))

    def make(self, features: int, classes: int, s: Any) -> None:
        names = ("num_stacks", "num_layers", "shared_weights")
        options = {name: getattr(s, name) for name in names} | {"dropout": s.skip_dropout}
        self.first = ARMAConvolution(features, s.hidden, **options)
        self.second = ARMAConvolution(s.hidden, classes, act=None, **options)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.first(self.drop(x), graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        return self.second(self.drop(self.embed(x, graph)), graph)


def degrees(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
) -> tuple[Adjacency, Tensor]:
    """The graph with self-loops, and 1 / sqrt(degree) of target and source. -> adjacency, [entries, 2]"""
    adj = adjacency(edge_index, num_nodes)
    root = adj.degree.to(torch.get_default_dtype()).rsqrt()
    return adj, torch.stack([root[adj.row], root[adj.col]], dim=1)


class MoNet(Baseline):
    """Monti et al., CVPR 2017, with the coordinates of its citation experiments: tanh(A u + b) of
    u_ij = (1 / sqrt(deg i), 1 / sqrt(deg j)). The degree stands for the graph; edge weights are not read."""

    usual = names.BODIES["monet"].settings
    graph = staticmethod(degrees)

    def make(self, features: int, classes: int, s: Any) -> None:
        widths = pairwise([features, s.hidden, classes])
        self.convs = nn.ModuleList(GaussianConvolution(*width, s.kernels) for width in widths)
        self.places = nn.ModuleList(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(2))

    def layer(self, k: int, x: Tensor, graph: tuple[Adjacency, Tensor]) -> Tensor:
        adj, coordinates = graph
        return self.convs[k](self.drop(x), adj, self.places[k](coordinates))


class SGC(Baseline):
    """Wu et al., ICML 2019: S^K X W. W comes first here: the same product, on as many columns as classes."""

    usual = names.BODIES["sgc"].settings

    def make(self, features: int, classes: int, s: Any) -> None:
        self.read = FeatureLinear(features, classes, bias=False)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        """There is no hidden layer: the class scores are all that is learnt about a node."""
        return self(x, graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        out = self.read(x)
        for _ in range(self.settings.steps):
            out = graph.gather(out)
        return out


class APPNP(Baseline):
    """Klicpera et al., ICLR 2019: predictions of a two-layer perceptron, then personalised PageRank."""

    usual = names.BODIES["appnp"].settings

    def make(self, features: int, classes: int, s: Any) -> None:
        if not 0.0 < s.alpha <= 1.0:
            raise InputError(f"alpha={s.alpha!r}: the probability to restart; choose 0 < alpha <= 1")
        self.first = FeatureLinear(features, s.hidden)
        self.second = FeatureLinear(s.hidden, classes)

    def embed(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        """The hidden units after propagation: without dropout the logits are a linear map of these."""
        return self.propagated(self.first(self.drop(x)).relu(), graph)

    def forward(self, x: Tensor, graph: WeightedGraph) -> Tensor:
        hidden = self.first(self.drop(x)).relu()
        return self.propagated(self.second(self.drop(hidden)), graph)

    def propagated(self, start: Tensor, graph: WeightedGraph) -> Tensor:
        """H <- (1 - alpha) S H + alpha H_0; entries are dropped anew in every step."""
        s, out = self.settings, start
        for _ in range(s.steps):
            step = graph.gather(out, s.edge_dropout if self.training else 0.0)
            out = step * (1.0 - s.alpha) + s.alpha * start
        return out


@dataclass(frozen=True, eq=False)
class LowRankGraph:
    """D^-1/2 (U V^T + I) D^-1/2, never multiplied out. D has the row sums of the middle, at least 1."""

    left: Tensor  # [nodes, rank], singular values included
    right: Tensor  # [nodes, rank]
    scale: Tensor  # [nodes, 1], D^-1/2

    def gather(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """One step of message passing in O(nodes * rank * columns). [nodes, f] -> [nodes, f]"""
        scaled = self.scale * x
        return self.scale * (self.left @ (self.right.t() @ scaled) + scaled)


class GCNSVD(GCN):
    """Entezari et al., WSDM 2020: GCN on the best approximation of the adjacency of a given rank, a defence.

    Random edges live in the small singular values, so a low rank leaves them out. The approximation stays
    factorised: time and memory grow with nodes * rank, not with the square of the nodes.
    """

    usual = names.BODIES["gcn-svd"].settings

    def make(self, features: int, classes: int, s: Any) -> None:
        super().make(features, classes, s)
        self._graphs: Recent[LowRankGraph] = Recent(1)

    @property
    def form(self) -> Hashable:  # type: ignore[override]
        return low_rank_graph, self.settings.rank

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> LowRankGraph:
        """The factors of the graph; those of the last one are kept, as they take a while."""
        arguments = (edge_index, num_nodes, self.settings.rank, edge_weight)
        return self._graphs.get((edge_index, edge_weight), num_nodes, lambda: low_rank_graph(*arguments))


def low_rank_graph(
    edge_index: Tensor, num_nodes: int, rank: int, edge_weight: Tensor | None = None
) -> LowRankGraph:
    """The truncated SVD of A (its rows are targets, its columns sources), parallel edges counted once."""
    source, target = edge_index.cpu().numpy()
    values = np.ones(len(source)) if edge_weight is None else edge_weight.double().cpu().numpy()
    matrix = sp.csr_matrix((values, (target, source)), shape=(num_nodes, num_nodes))
    if edge_weight is None:
        matrix.data[:] = 1.0
    rank = min(rank, num_nodes)
    if num_nodes <= 3 * rank:  # Lanczos needs room; so small a matrix may be dense
        u, s, vt = np.linalg.svd(matrix.toarray())
        u, s, vt = u[:, :rank], s[:rank], vt[:rank]
    else:
        u, s, vt = svds(matrix, rank, v0=np.random.default_rng(0).standard_normal(num_nodes))
    left, right = u * s, vt.T
    degree = np.maximum(left @ right.sum(axis=0) + 1.0, 1.0)
    parts = (left, right, 1.0 / np.sqrt(degree)[:, None])
    made = (torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32)) for part in parts)
    return LowRankGraph(*(part.to(edge_index.device) for part in made))
