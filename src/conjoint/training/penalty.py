"""The structural penalty from a sample of nodes: an estimate whose expectation is the penalty itself.

Both losses are sums over pairs of nodes, so a batch weighs a pair by one over its chance of being drawn
(Horvitz and Thompson). The nodes of a batch are `groups` that were drawn together: clusters, or single nodes.
Of `total` groups, `drawn` were taken, each set of that size with equal chance:

- a group, and a pair inside it: weight c1 = total / drawn;
- a pair from two groups: weight c2 = total (total - 1) / (drawn (drawn - 1)).

The neighbours of a node are known in full where they are few. Where they are many, k of its d neighbours are
drawn with replacement: d / k times their sum estimates the sum, and d^2 / (k (k - 1)) times the sum over
pairs of different draws estimates a product of two sums.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from ..graph.adjacency import Adjacency
from ..nn import ops
from ..nn.interventions import Intervention, LowRank, MatrixFactorization, SelfExpression


@dataclass(frozen=True, eq=False)
class PenaltySample:
    """Nodes, their drawn neighbours, and how they were drawn. Rows are those of the batch's part of V."""

    own: Tensor  # [nodes] row of each node
    adj: Adjacency  # entry: node i (among `own`) and the row of one drawn neighbour
    degree: Tensor  # [nodes] neighbours that there are
    groups: tuple[int, ...] | None  # sizes of the groups, in the order of `own`; None: each node is one
    total: int  # groups in the graph
    num_simple: int  # ||A||^2

    def to(self, device: torch.device) -> "PenaltySample":
        moved = {name: getattr(self, name).to(device) for name in ("own", "adj", "degree")}
        return replace(self, **moved)

    @property
    def drawn(self) -> int:
        return self.own.numel() if self.groups is None else len(self.groups)

    @property
    def c1(self) -> float:
        return self.total / self.drawn

    @property
    def c2(self) -> float:
        """Where all groups are in the sample every weight is 1, also if there is but one group."""
        if self.drawn == self.total:
            return 1.0
        return self.total * (self.total - 1) / (self.drawn * (self.drawn - 1))

    @cached_property
    def sums_weight(self) -> Tensor:
        """d / k for every entry: the drawn sum times it estimates the whole sum. [entries]"""
        count = self.adj.degree.clamp(min=1)
        return (self.degree / count)[self.adj.row]

    @cached_property
    def products_weight(self) -> Tensor:
        """d^2 / (k (k - 1)) where neighbours were drawn, 0 where all are known. [nodes]"""
        k, d = self.adj.degree.to(torch.float64), self.degree.to(torch.float64)
        weight = d * d / (k * (k - 1)).clamp(min=1)
        return torch.where(self.degree > self.adj.degree, weight, 0.0).float()


def estimate(intervention: Intervention, rows: Tensor, sample: PenaltySample) -> Tensor:
    """The estimate of `intervention.penalty` over the whole graph, from the batch's rows of V. -> scalar"""
    function = next(f for kind, f in ESTIMATES.items() if isinstance(intervention, kind))
    return function(rows, sample)


def has_estimate(intervention: Intervention | None) -> bool:
    """Whether batches can serve the intervention: they know its penalty, or it has none."""
    if intervention is None or isinstance(intervention, tuple(ESTIMATES)):
        return True
    learns = any(p.requires_grad and p.dim() > 1 for p in intervention.parameters())
    return type(intervention).penalty is Intervention.penalty and not learns


def mf_estimate(rows: Tensor, sample: PenaltySample) -> Tensor:
    """||A||^2 - 2 sum_ij A_ij C_ij + ||V^T V||^2, the last as a sum over pairs of <v_i, v_j>^2."""
    own = rows[sample.own]
    score = ops.edge_dot(sample.adj, own, rows)
    along_edges = sample.c1 * torch.dot(score, sample.sums_weight.to(score.dtype))
    if sample.groups is None:
        within = own.square().sum(dim=1).square().sum()
    else:
        grams = [part.t() @ part for part in own.split(sample.groups)]
        within = torch.stack([gram.square().sum() for gram in grams]).sum()
    pairs = (own.t() @ own).square().sum()
    return sample.num_simple - 2.0 * along_edges + _pairs(sample, within, pairs)


def sc_estimate(rows: Tensor, sample: PenaltySample) -> Tensor:
    """||A||^2 - 2 tr(P^T P) + <P^T P, V^T V> with P = A^T V, whose row j sums V over the neighbours of j.

    P^T P is estimated node by node: p_j p_j^T where all neighbours are known, else from pairs of draws.
    """
    own = rows[sample.own]
    ones = torch.ones(sample.adj.num_entries, 1, dtype=rows.dtype, device=rows.device)
    sums = ops.aggregate(sample.adj, ones, rows.unsqueeze(1)).squeeze(1)  # [nodes, rank]
    many = sample.products_weight.to(rows.dtype)
    weight = torch.where(many > 0, many, 1.0)
    entry = (many > 0)[sample.adj.row].nonzero().squeeze(1)  # only crowded nodes have draws to take off
    node, source = sample.adj.row[entry], rows[sample.adj.col[entry]]
    less = many[node]
    traces = weight @ sums.square().sum(dim=1) - less @ source.square().sum(dim=1)
    if sample.groups is None:
        within = weight @ (sums * own).sum(dim=1).square() - less @ (source * own[node]).sum(dim=1).square()
    else:
        bounds = [0, *torch.tensor(sample.groups).cumsum(0).tolist()]
        parts = []
        for start, end in pairwise(bounds):
            here = (node >= start) & (node < end)
            grams = _gram(sums[start:end], weight[start:end]) - _gram(source[here], less[here])
            parts.append((grams * _gram(own[start:end])).sum())
        within = torch.stack(parts).sum()
    pairs = ((_gram(sums, weight) - _gram(source, less)) * _gram(own)).sum()
    return sample.num_simple - 2.0 * sample.c1 * traces + _pairs(sample, within, pairs)


def _gram(rows: Tensor, weight: Tensor | None = None) -> Tensor:
    return rows.t() @ (rows if weight is None else rows * weight.unsqueeze(1))


def _pairs(sample: PenaltySample, within: Tensor, pairs: Tensor) -> Tensor:
    """Sum over all pairs of the graph, from the sum over pairs in the sample and that inside its groups."""
    return sample.c1 * within + sample.c2 * (pairs - within)


ESTIMATES: dict[type[LowRank], Callable[[Tensor, PenaltySample], Tensor]] = {
    MatrixFactorization: mf_estimate,
    SelfExpression: sc_estimate,
}
