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
from .library import run
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
        mix_logit: Tensor | None,
        eps_logit: Tensor | None,
        seed: Tensor | None,
        adj: Adjacency,
        negative_slope: float,
        dropout: float,
        merge: bool,
    ) -> Tensor:
        mix, self_weight = _shares(mix_logit, eps_logit, h.size(1))
        a_src, a_dst = _head_dots(h, att_src, att_dst, adj.num_dst)
        inputs = (a_src, a_dst, edge_logit, structure, mix)
        feature, alpha = _attention(adj.rowptr, adj.col, *inputs, negative_slope)
        alpha = feature if mix is None else alpha
        ctx.adj, ctx.negative_slope, ctx.dropout, ctx.merge = adj, negative_slope, dropout, merge
        ctx.groups = _groups(mix_logit, eps_logit)
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
        shares, d_shares = (
            (inputs[4], self_weight),
            (d_mix if needs[5] else None, d_self if needs[6] else None),
        )
        d_mix_logit, d_eps_logit = _shares_backward(*shares, *d_shares, ctx.groups)
        d_vectors = add_head_dots_backward(h, att_src, att_dst, d_src, d_dst, into=d_h)
        return (
            d_h,
            d_vectors[0],
            d_vectors[1],
            d_logit if needs[3] else None,
            d_structure if needs[4] else None,
            d_mix_logit,
            d_eps_logit,
            *(None,) * 5,
        )


def _groups(mix_logit: Tensor | None, eps_logit: Tensor | None) -> int:
    return next((part.size(0) for part in (mix_logit, eps_logit) if part is not None), 0)


def _shares(
    mix_logit: Tensor | None, eps_logit: Tensor | None, heads: int
) -> tuple[Tensor | None, Tensor | None]:
    """(r_f, r_s) [heads, 2] and epsilon [heads] (csrc/shares.h)."""
    mix = None if mix_logit is None else mix_logit.new_empty(heads, 2)
    eps = None if eps_logit is None else eps_logit.new_empty(heads)
    found = mix_logit if eps_logit is None else eps_logit
    if found is not None:
        run("shares", found.dtype, mix_logit, eps_logit, _groups(mix_logit, eps_logit), heads, mix, eps)
    return mix, eps


def _shares_backward(
    mix: Tensor | None, eps: Tensor | None, d_mix: Tensor | None, d_eps: Tensor | None, groups: int
) -> tuple[Tensor | None, Tensor | None]:
    d_mix_logit = None if d_mix is None else d_mix.new_empty(groups, 2)
    d_eps_logit = None if d_eps is None else d_eps.new_empty(groups)
    found = d_mix if d_eps is None else d_eps
    if found is not None:
        heads, grads, results = found.size(-1), (d_mix, d_eps), (d_mix_logit, d_eps_logit)
        run("shares_backward", found.dtype, mix, eps, *grads, groups, heads, *results)
    return d_mix_logit, d_eps_logit


def attend(
    adj: Adjacency,
    h: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix_logit: Tensor | None,
    eps_logit: Tensor | None,
    negative_slope: float,
    dropout: float,
    seed: Tensor | None,
    merge: bool,
) -> Tensor:
    given = (h, att_src, att_dst, edge_logit, structure, mix_logit, eps_logit)
    inputs = [None if part is None else part.contiguous() for part in given]
    return _Attend.apply(*inputs, dropping.in_use(dropout, seed), adj, negative_slope, dropout, merge)
