"""Models without hidden layers, fitted by `training.closed_form`: a safety net and a yardstick for networks.

They are modules so that a run folder, an ensemble and new nodes treat them as any other network.
"""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.roles import role_features
from ..graph.sparse import is_sparse
from . import ops
from .layers import project
from .model import ScoredModel
from .random_propagation import propagate, propagation_weights

ABSENT = -30.0  # logit of a class that no training node has
AT_ONCE = 2**18  # places of nodes in trees that are followed side by side


class SimpleModel(ScoredModel):
    """What the models of this file share: the graph's form, no intervention, no hidden layer."""

    def __init__(self) -> None:
        super().__init__(None)

    def embed(self, x: Tensor, graph: Adjacency) -> Tensor:
        """The class probabilities: there is no hidden layer."""
        return self(x, graph).softmax(dim=1)


def neighbour_mean(graph: Adjacency, h: Tensor, with_self: bool = True) -> Tensor:
    """The mean over a node's neighbours, itself included or not; 0 where there are none. [nodes, k]"""
    total = ops.aggregate(graph, h.new_ones(graph.num_entries, 1), h.unsqueeze(1)).squeeze(1)
    count = graph.degree.to(h.dtype).unsqueeze(1)
    return total / count if with_self else (total - h) / (count - 1).clamp(min=1.0)


def one_hot(labels: Tensor, graph: Adjacency, classes: int) -> Tensor:
    """A row of zeros for -1, and for new nodes, which have no label. [labelled nodes] -> [nodes, classes]"""
    known = F.pad(labels, (0, graph.num_src - labels.numel()), value=-1)
    return F.one_hot(known.clamp(min=0), classes) * (known >= 0).unsqueeze(1)


def labels_around(graph: Adjacency, y: Tensor) -> Tensor:
    """Shares of the classes among labels one and two steps away, a node's own label left out at both.

    `y` has a row of zeros where a label is not known; the last column is the share of neighbours that have
    one. [nodes, classes] -> [nodes, 2 * classes + 1]
    """
    near = neighbour_mean(graph, y, with_self=False)
    # Of a walk of two steps from i, the share that is back at i: the mean over neighbours j of 1 / d_j.
    others = graph.degree.to(y.dtype).unsqueeze(1) - 1
    back = neighbour_mean(graph, 1.0 / others.clamp(min=1.0), with_self=False)
    far = (neighbour_mean(graph, near, with_self=False) - back * y).clamp(min=0.0)
    known = near.sum(dim=1, keepdim=True)
    return torch.cat(
        [near / known.clamp(min=1e-6), far / far.sum(dim=1, keepdim=True).clamp(min=1e-6), known], 1
    )


class HopLinear(SimpleModel):
    """Logistic regression on features and on their means over 1 to k hops: sum over k of P^k X W_k + b.

    Args:
        hops: which k take part, as digits: "0" is plain logistic regression, "2" that on smoothed features.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, in_channels: int, out_channels: int, *, hops: str = "0") -> None:
        super().__init__()
        if not hops.isascii() or not hops.isdigit() or len(set(hops)) < len(hops):
            raise InputError(f"hops: {hops!r}; write different digits, for example 012")
        self.hops = [int(k) for k in sorted(hops)]
        self.weight = nn.Parameter(torch.zeros(len(hops), out_channels, in_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        # Of dense features; sparse ones are read as they are.
        self.register_buffer("shift", torch.zeros(in_channels))
        self.register_buffer("scale", torch.ones(in_channels))

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        if not is_sparse(x):
            x = (x - self.shift) * self.scale
        out, done = x.new_zeros(x.size(0), self.bias.numel()), self.hops[-1]
        for k in range(done, -1, -1):  # Horner: what takes part at k hops is smoothed k times
            if k in self.hops:
                out = out + project(x, self.weight[self.hops.index(k)])
            out = neighbour_mean(graph, out) if k else out
        return out + self.bias


class LabelPropagation(SimpleModel):
    """The labels of training nodes, propagated by personalised PageRank; features play no part.

    Args:
        teleport: share of a node's own label in each step.
        steps: of propagation.
    """

    labels: Tensor

    def __init__(self, num_nodes: int, out_channels: int, *, teleport: float = 0.1, steps: int = 50) -> None:
        super().__init__()
        self.teleport, self.steps, self.out_channels = teleport, steps, out_channels
        self.register_buffer("labels", torch.full((num_nodes,), -1))
        self.prior = nn.Parameter(torch.zeros(out_channels), requires_grad=False)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        start = one_hot(self.labels, graph, self.out_channels).to(self.prior.dtype)
        mass = propagate(graph, propagation_weights(graph, None), start, self.steps, self.teleport)
        prior = self.prior.softmax(dim=0)  # decides where no label arrives
        return ((mass + 1e-4 * prior) / (mass.sum(dim=1, keepdim=True) + 1e-4)).log()


class BoostedTrees(SimpleModel):
    """Gradient-boosted trees on a node's features, their means over one and two hops, its role and the labels
    of training nodes around it.

    Args:
        nodes: of all trees together.
        rounds: of boosting, each with one tree per class (one if there are two).
        rank: dimensions that wide features are reduced to.
        labelled: nodes that may have a label; 0: labels are not read.
    """

    basis: Tensor
    labels: Tensor
    column: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    root: Tensor
    baseline: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        nodes: int = 1,
        rounds: int = 1,
        rank: int = 64,
        labelled: int = 0,
    ) -> None:
        super().__init__()
        self.out_channels, self.rounds = out_channels, rounds
        self.per_round = 1 if out_channels == 2 else out_channels
        width = (in_channels, rank) if in_channels > rank else (0, 0)
        parts: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "basis": (width, torch.float32),
            "column": ((nodes,), torch.int64),
            "threshold": ((nodes,), torch.float64),
            "left": ((nodes,), torch.int64),  # a leaf is its own child
            "right": ((nodes,), torch.int64),
            "value": ((nodes,), torch.float64),
            "root": ((rounds, self.per_round), torch.int64),
            "baseline": ((self.per_round,), torch.float64),
        }
        for name, (shape, dtype) in parts.items():
            self.register_buffer(name, torch.zeros(shape, dtype=dtype))
        if labelled:
            self.register_buffer("labels", torch.full((labelled,), -1))
        self.reads_labels = labelled > 0
        self.left += torch.arange(nodes, device=self.left.device)
        self.right += torch.arange(nodes, device=self.right.device)
        self.anchor = nn.Parameter(torch.zeros(()), requires_grad=False)  # tells the device

    def columns(self, x: Tensor, graph: Adjacency) -> Tensor:
        """What the trees read. -> [nodes, 3 * min(rank, features) + roles, and 2 * classes + 1 for labels]"""
        own = project(x, self.basis.t()) if self.basis.numel() else _dense(x)
        near = neighbour_mean(graph, own, with_self=False)
        roles = graph.once(role_features, lambda: role_features(graph.edge_index, graph.num_src))
        parts = [own, near, neighbour_mean(graph, near, with_self=False), roles.to(own)]
        if self.reads_labels:
            parts.append(labels_around(graph, one_hot(self.labels, graph, self.out_channels).to(own)))
        return torch.cat(parts, dim=1)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        return self.logits_of(x, graph, slice(None))

    def logits_of(self, x: Tensor, graph: Adjacency, nodes: slice) -> Tensor:
        table = self.columns(x, graph)[nodes].double()
        self._check(table.size(1))
        some = table.size(0) * self.root.numel() < AT_ONCE
        out = self.baseline.repeat(len(table), 1)
        for part in self._walks(table) if some else self._cuts(table):
            out = out + part
        if self.per_round == 1:
            out = torch.cat([torch.zeros_like(out), out], dim=1)
        return out.to(self.anchor.dtype)

    def _walks(self, table: Tensor) -> Tensor:
        """What each round adds for a few nodes: all go down all trees at once. [rounds, nodes, trees]"""
        at = self.root.flatten().repeat(len(table), 1)
        while True:
            goes_left = table.gather(1, self.column[at]) <= self.threshold[at]
            below = torch.where(goes_left, self.left[at], self.right[at])
            if torch.equal(below, at):
                return self.value[at].view(len(table), *self.root.shape).transpose(0, 1)
            at = below

    def _cuts(self, table: Tensor) -> Iterator[Tensor]:
        """The same for many: each node of a tree cuts those that came to it, and reads one column of them."""
        columns, threshold = table.t().contiguous().cpu().numpy(), self.threshold.tolist()
        column, left, right = (part.tolist() for part in (self.column, self.left, self.right))
        value, everyone = self.value.tolist(), np.arange(len(table))
        for roots in self.root.tolist():
            found = np.empty((len(roots), len(table)))
            for tree, root in enumerate(roots):
                waiting = [(root, everyone)]
                while waiting:
                    at, nodes = waiting.pop()
                    if left[at] == at:
                        found[tree, nodes] = value[at]
                        continue
                    goes_left = columns[column[at], nodes] <= threshold[at]
                    waiting += [(left[at], nodes[goes_left]), (right[at], nodes[~goes_left])]
            yield torch.from_numpy(found).t().to(table)

    def _check(self, columns: int) -> None:
        """Weights may come from a file: every child lies behind its parent, so that each walk ends."""
        here = torch.arange(self.left.numel(), device=self.left.device)
        leaf = (self.left == here) & (self.right == here)
        inner = (self.left > here) & (self.right > here)
        inside = (torch.maximum(self.left, self.right) < here.numel()) & (self.column >= 0)
        rooted = (self.root >= 0) & (self.root < here.numel())
        if not (bool(((leaf | inner) & inside & (self.column < columns)).all()) and bool(rooted.all())):
            raise InputError("trees: not those of a trained model; restore the run folder from a copy")


def _dense(x: Tensor) -> Tensor:
    return x.to_dense() if is_sparse(x) else x
