"""The largest value among a node's neighbours, channel by channel, a bounded number of messages at a time."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from ...graph.adjacency import Adjacency

MESSAGES = 1 << 20  # values that are gathered at once


def neighbour_max(adj: Adjacency, x: Tensor) -> Tensor:
    """max over j in N_i of x_j; 0 where there is no neighbour. [sources, channels] -> [targets, channels]"""
    return _NeighbourMax.apply(adj, x)


class _NeighbourMax(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, x: Tensor) -> Tensor:
        out = x.new_empty(adj.num_dst, x.size(1))
        where = torch.empty(adj.num_dst, x.size(1), dtype=torch.int64, device=x.device)
        width = max(1, MESSAGES // max(1, adj.num_entries))  # channels at a time
        for start in range(0, x.size(1), width):
            some = slice(start, start + width)
            values = x[:, some].index_select(0, adj.col)
            row = adj.row.unsqueeze(1).expand_as(values)
            empty = values.new_full((adj.num_dst, values.size(1)), -torch.inf)
            top = empty.scatter_reduce(0, row, values, "amax")
            # The first entry that has the largest value: one neighbour takes the gradient, always the same.
            entry = torch.arange(adj.num_entries, device=x.device).unsqueeze(1).expand_as(values)
            entry = torch.where(values == top[adj.row], entry, adj.num_entries)
            first = torch.full_like(top, adj.num_entries, dtype=torch.int64).scatter_reduce(
                0, row, entry, "amin"
            )
            out[:, some] = torch.where(top.isfinite(), top, 0.0)
            where[:, some] = first
        padded = torch.cat([adj.col, adj.col.new_full((1,), x.size(0))])
        ctx.save_for_backward(padded[where])
        ctx.rows = x.size(0)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (source,) = ctx.saved_tensors
        return None, grad.new_zeros(ctx.rows + 1, grad.size(1)).scatter_add(0, source, grad)[:-1]
