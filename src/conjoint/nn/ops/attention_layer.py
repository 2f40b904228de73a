"""Attention weights of Eq. 4, 7 and 8, and a whole layer after its projection (csrc/attention.h)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency, Transposed
from ...kernels.gradient import once_differentiable
from ...kernels.library import MAX_HEADS, Values, partial_sums, run
from ...kernels.memory import contiguous as kept_contiguous
from ...kernels.memory import empty
from .activation import Mask, mask_of
from .aggregation import aggregate, sum_neighbours, sum_neighbours_backward
from .entries import by_source, contiguous, edge_softmax, serves, sum_entries
from .projection import dot_heads, dot_heads_backward, head_dots

Parts = Sequence[Any]  # a_src, a_dst, edge_logit, structure and mix as `attention` takes them


def attention(
    adj: Adjacency,
    a_src: Tensor,  # [num_src, heads]
    a_dst: Tensor | None,  # [num_dst, heads]
    edge_logit: Tensor | None,  # [entries, heads]
    structure: Tensor | None,  # [entries, 1 or heads]: s_ij with a mix, else C_ij
    mix: Tensor | None,  # [heads, 2]: r_f, r_s
    negative_slope: float,
) -> tuple[Tensor, Tensor]:
    """Eq. 4 with Eq. 7 if there is a mix, else Eq. 8. Returns (alpha, f), both [entries, heads].

    Eq. 8 multiplies two softmaxes and renormalises; their denominators cancel, so it is one softmax of the
    summed logits. In that case f is not needed for alpha and alpha is returned twice.
    """
    parts = (a_src, a_dst, edge_logit, structure, mix)
    if serves(adj, *parts) and a_src.size(1) <= MAX_HEADS:
        found = _Attention.apply(adj, by_source(adj, a_src), float(negative_slope), *contiguous(*parts))
        return (found, found) if mix is None else found
    logit = a_src[adj.col]
    if a_dst is not None:
        logit = logit + a_dst[adj.row]
    if edge_logit is not None:
        logit = logit + edge_logit
    logit = F.leaky_relu(logit, negative_slope)
    if mix is None or structure is None:
        alpha = edge_softmax(adj, logit if structure is None else logit + structure)
        return alpha, alpha
    feature = edge_softmax(adj, logit)
    return mix[:, 0] * feature + mix[:, 1] * structure, feature


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, back: Transposed | None, slope: float, *parts: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.adj, ctx.back, ctx.slope = adj, back, slope
        feature, alpha = weigh_entries(adj, parts, slope)
        ctx.save_for_backward(feature, *parts)
        return feature if alpha is None else (alpha, feature)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, grad_feature: Tensor | None = None) -> Any:
        feature, *parts = ctx.saved_tensors
        if grad is None and grad_feature is None:
            return (None,) * 8
        grads = contiguous(torch.zeros_like(feature) if grad is None else grad, grad_feature)
        needs, found = ctx.needs_input_grad[3:], (ctx.adj, parts, ctx.slope, feature)
        d_logit, d_dst, d_structure, d_mix = weigh_entries_backward(*found, grads, needs)
        d_src = None if ctx.back is None else sum_entries(ctx.back, d_logit)
        d_edge, d_mix = d_logit if needs[2] else None, None if d_mix is None else d_mix.t()
        return None, None, None, d_src, d_dst, d_edge, d_structure, d_mix


def weigh_entries(adj: Adjacency, parts: Parts, slope: float) -> tuple[Tensor, Tensor | None]:
    """The kernel of `attention`: (f, alpha); no alpha where it is f."""
    a_src, *_, mix = parts
    feature = empty(a_src, adj.num_entries, a_src.size(1))
    alpha = None if mix is None else empty(a_src, *feature.shape)
    run("attention", a_src.dtype, (), (feature, alpha), _attention(adj, parts, slope))
    return feature, alpha


def weigh_entries_backward(
    adj: Adjacency, parts: Parts, slope: float, feature: Tensor, grads: Sequence[Any], needs: Sequence[bool]
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """(d logit, d a_dst, d structure, d mix [2, heads]) from the gradients of alpha and f."""
    a_src, a_dst, _, structure, _ = parts
    d_logit = empty(feature, *feature.shape)
    d_dst = None if a_dst is None else torch.empty_like(a_dst)
    d_structure = torch.empty_like(structure) if needs[3] and structure is not None else None
    d_mix = a_src.new_empty(2, a_src.size(1)) if needs[4] else None
    sums = None if d_mix is None else partial_sums(a_src, d_mix.numel())
    writes = (d_logit, d_dst, d_structure, sums, d_mix)
    run("attention_backward", a_src.dtype, (feature, *grads), writes, _attention(adj, parts, slope))
    return d_logit, d_dst, d_structure, d_mix


def _attention(adj: Adjacency, parts: Parts, slope: float) -> Values:
    """The members of `Attention` in csrc/attention.h."""
    a_src, _, _, structure, _ = parts
    width = 1 if structure is None else structure.shape[1:].numel()
    return (adj.rowptr, adj.col, adj.num_dst, a_src.size(1), width, *parts, slope)


def shares(
    mix_logit: Tensor | None, eps_logit: Tensor | None, heads: int
) -> tuple[Tensor | None, Tensor | None]:
    """Eq. 6 and the epsilon of Eq. 9, for every head. -> (r_f, r_s) [heads, 2], epsilon [heads]"""
    mix = None if mix_logit is None else mix_logit.softmax(-1).expand(heads, 2)
    return mix, None if eps_logit is None else eps_logit.sigmoid().expand(heads)


def attend(
    adj: Adjacency,
    h: Tensor,  # [num_src, heads, channels]
    att_src: Tensor,  # [heads, channels]
    att_dst: Tensor,  # [heads, channels]
    edge_logit: Tensor | None,  # [entries, heads]
    structure: Tensor | None,  # [entries] or [entries, 1 or heads]: s_ij with a mix, else C_ij
    mix_logit: Tensor | None,  # [1 or heads, 2]: g_f and g_s
    eps_logit: Tensor | None,  # [1 or heads]
    negative_slope: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    merge: bool = False,  # the mean of the heads
    bias: Tensor | None = None,  # [heads * channels], or [channels] of merged heads
) -> Tensor:
    """A layer after its projection: Eq. 4, 7 or 8, 9, where sources and targets are one kind of node.

    -> [num_dst, heads, channels], or [num_dst, 1, channels] of merged heads
    """
    parts = (h, att_src, att_dst, edge_logit, structure, mix_logit, eps_logit, bias)
    if serves(adj, *parts) and h.size(1) <= MAX_HEADS:
        mask, slope = mask_of(dropout, seed), float(negative_slope)
        return _Attend.apply(adj, slope, mask, merge, *contiguous(*parts))
    mix, self_weight = shares(mix_logit, eps_logit, h.size(1))
    a_src, a_dst = head_dots(h, att_src, att_dst)
    if structure is not None and structure.dim() == 1:
        structure = structure.unsqueeze(1)
    inputs = (a_src, a_dst[: adj.num_dst], edge_logit, structure, mix)
    alpha, _ = attention(adj, *inputs, negative_slope)
    out = aggregate(adj, alpha, h, self_weight, dropout, seed)  # [num_dst, heads, channels]
    out = out.mean(dim=1, keepdim=True) if merge else out
    return out if bias is None else out + bias.view(out.shape[1:])


class _Attend(Function):
    """The kernels of all steps one after the other. Together they need one gradient of h instead of two, and
    a small graph is spared the cost of several autograd nodes."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, slope: float, mask: Mask, merge: bool, *tensors: Any) -> Tensor:
        h, att_src, att_dst, edge_logit, structure, mix_logit, eps_logit, bias = tensors
        groups = next((logit.size(0) for logit in (mix_logit, eps_logit) if logit is not None), 0)
        mix = None if mix_logit is None else h.new_empty(h.size(1), 2)
        self_weight = None if eps_logit is None else h.new_empty(h.size(1))
        if groups:
            run("shares", h.dtype, (mix_logit, eps_logit, groups, h.size(1)), (mix, self_weight))
        a_src, a_dst = dot_heads(h, (att_src, att_dst), adj.num_dst)
        parts = (a_src, a_dst, edge_logit, structure, mix)
        feature, alpha = weigh_entries(adj, parts, slope)
        alpha = feature if alpha is None else alpha
        ctx.settings = (adj, slope, mask, merge, groups)
        ctx.save_for_backward(h, att_src, att_dst, self_weight, feature, alpha, *parts)
        out = sum_neighbours(adj, (alpha, h, self_weight), mask, merge)
        return out if bias is None else out.add_(bias.view(out.shape[1:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        h, att_src, att_dst, self_weight, feature, alpha, *parts = ctx.saved_tensors
        adj, slope, mask, merge, groups = ctx.settings
        back, needs, summed = adj.transposed, ctx.needs_input_grad[4:], (alpha, h, self_weight)
        grad = kept_contiguous(grad)
        d_bias = grad.flatten(1).sum(dim=0) if needs[7] else None
        d_alpha, d_h, d_self = sum_neighbours_backward(adj, back, summed, mask, grad, merge)
        wanted, found = (True, True, *needs[3:6]), (adj, parts, slope, feature)
        d_logit, d_dst, d_structure, d_mix = weigh_entries_backward(*found, (d_alpha, None), wanted)
        d_dots = (sum_entries(back, d_logit), d_dst)
        d_mix_logit = None if d_mix is None else h.new_empty(groups, 2)
        d_eps_logit = h.new_empty(groups) if needs[6] else None
        if d_mix_logit is not None or d_eps_logit is not None:
            reads = (parts[4], self_weight, d_mix, d_self, groups, h.size(1))
            run("shares_backward", h.dtype, reads, (d_mix_logit, d_eps_logit))
        d_att = dot_heads_backward(h, (att_src, att_dst), adj.num_dst, d_dots, d_h, add=True)
        d_edge = d_logit if needs[3] else None
        d_logits = (d_edge, d_structure, d_mix_logit, d_eps_logit)
        return *(None,) * 4, d_h, d_att[0], d_att[1], *d_logits, d_bias
