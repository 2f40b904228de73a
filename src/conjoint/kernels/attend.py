"""A whole attention layer after its projection, as one step forward and one step back.

The same kernels as in `attention`, `aggregation` and `projection`, called one after the other. Together they
need one gradient of h instead of two, and a small graph is spared the cost of several autograd nodes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from . import dropout as dropping
from .aggregation import _aggregate, _aggregate_backward
from .attention import _attention, _attention_backward
from .projection import _head_dots, add_head_dots_backward
from .structure import sum_entries


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        att_src: Tensor,
        att_dst: Tensor,
        edge_logit: Tensor | None,
        structure: Tensor | None,
        mix: Tensor | None,
        self_weight: Tensor | None,
        seed: Tensor | None,
        adj: Adjacency,
        negative_slope: float,
        dropout: float,
        merge: bool,
    ) -> Tensor:
        a_src, a_dst = _head_dots(h, att_src, att_dst, adj.num_dst)
        inputs = (a_src, a_dst, edge_logit, structure, mix)
        feature, alpha = _attention(adj.rowptr, adj.col, *inputs, negative_slope)
        alpha = feature if mix is None else alpha
        ctx.adj, ctx.negative_slope, ctx.dropout, ctx.merge = adj, negative_slope, dropout, merge
        ctx.save_for_backward(h, att_src, att_dst, *inputs, feature, alpha, self_weight, seed)
        return _aggregate(adj.rowptr, adj.col, alpha, h, self_weight, seed, dropout, merge)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        h, att_src, att_dst, *inputs, feature, alpha, self_weight, seed = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        by_target, by_source = (adj.rowptr, adj.col), adj.transposed
        needs = ctx.needs_input_grad
        d_alpha, d_h, d_self = _aggregate_backward(
            *by_target,
            *(by_source.rowptr, by_source.row, by_source.perm),
            *(alpha, h, self_weight, seed, ctx.dropout, grad.contiguous(), ctx.merge),
        )
        call: Any = _attention_backward  # too many arguments in a row for the type checker to count
        d_logit, d_dst, d_structure, d_mix = call(
            *(*by_target, *inputs, ctx.negative_slope, feature, d_alpha, None, needs[4], needs[5])
        )
        d_src = sum_entries(by_source.rowptr, by_source.perm, d_logit)
        d_vectors = add_head_dots_backward(h, att_src, att_dst, d_src, d_dst, into=d_h)
        return (
            d_h,
            d_vectors[0],
            d_vectors[1],
            d_logit if needs[3] else None,
            d_structure if needs[4] else None,
            d_mix.t() if needs[5] else None,
            d_self if needs[6] else None,
            *(None,) * 5,
        )


def attend(
    adj: Adjacency,
    h: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix: Tensor | None,
    self_weight: Tensor | None,
    negative_slope: float,
    dropout: float,
    seed: Tensor | None,
    merge: bool,
) -> Tensor:
    given = (h, att_src, att_dst, edge_logit, structure, mix, self_weight)
    inputs = [None if part is None else part.contiguous() for part in given]
    return _Attend.apply(*inputs, dropping.in_use(dropout, seed), adj, negative_slope, dropout, merge)
