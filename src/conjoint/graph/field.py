"""The receptive field: the part of a graph that can reach the predictions of some nodes.

Two layers of attention read two hops. For 60 labelled nodes of Pubmed that is a small part of the graph, and
computing only that part gives the same loss and the same gradient.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .adjacency import Adjacency


@dataclass(frozen=True, eq=False)
class Field:
    """Nodes ordered by distance from the targets, and one adjacency per layer, the widest first.

    `n_id` holds global ids: the targets, then their neighbours, then theirs. Layer k reads the first
    `layers[k].num_src` of them and writes the first `layers[k].num_dst`. The entries of a later layer are
    the first entries of an earlier one, so a per-entry score computed for the widest layer serves all.
    """

    n_id: Tensor
    layers: tuple[Adjacency, ...]

    @property
    def num_entries(self) -> int:
        return sum(layer.num_entries for layer in self.layers)


def receptive_field(whole: Adjacency, targets: Tensor, hops: int) -> Field:
    """The field of `targets` (unique node ids, in the order wanted) under `hops` layers."""
    local = torch.full((whole.num_src,), -1, dtype=torch.long, device=targets.device)
    local[targets] = torch.arange(targets.numel(), device=targets.device)
    n_id, frontier, sizes = targets, targets, [targets.numel()]
    rows = []  # entries of the nodes reached so far, ring by ring
    for _ in range(hops):
        ring = entries_of(whole, frontier)
        rows.append(ring)
        sources = whole.col[ring]
        frontier = sources[local[sources] < 0].unique()
        local[frontier] = torch.arange(n_id.numel(), n_id.numel() + frontier.numel(), device=targets.device)
        n_id = torch.cat([n_id, frontier])
        sizes.append(n_id.numel())
    entries = torch.cat(rows)
    degree = whole.degree[n_id[: sizes[-2]]]
    rowptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    col = local[whole.col[entries]]
    log_weight = None if whole.log_weight is None else whole.log_weight[entries]
    layers = [_prefix(rowptr, col, log_weight, sizes[k], sizes[k + 1]) for k in reversed(range(hops))]
    return Field(n_id, tuple(layers))


def entries_of(whole: Adjacency, nodes: Tensor) -> Tensor:
    """Positions of the entries of these rows, row by row."""
    degree = whole.degree[nodes]
    start = whole.rowptr[nodes] - (degree.cumsum(0) - degree)
    return torch.arange(int(degree.sum()), device=nodes.device) + start.repeat_interleave(degree)


def _prefix(rowptr: Tensor, col: Tensor, log_weight: Tensor | None, num_dst: int, num_src: int) -> Adjacency:
    rowptr = rowptr[: num_dst + 1]
    count = int(rowptr[-1])
    log_weight = None if log_weight is None else log_weight[:count]
    perm = torch.arange(count, device=col.device)
    return Adjacency(rowptr, col[:count], perm, num_src, log_weight=log_weight)
