"""Attention weights of Eq. 4, 7 and 8, and a whole layer after its projection (csrc/attention.h, layer.h)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency, Transposed
from ...kernels.gradient import once_differentiable
from ...kernels.library import MAX_CHUNKS, MAX_HEADS, Values, partial_sums, run
from ...kernels.memory import contiguous as kept_contiguous
from ...kernels.memory import empty
from ...recording import compiling
from .activation import Mask, mask_of
from .aggregation import aggregate
from .entries import by_source, contiguous, edge_softmax, serves, sum_entries
from .factors import factor_attention
from .projection import head_dots, multiply, project

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
    h: Tensor,  # [num_src, heads, channels]; with a weight the rows that it maps to them, [num_src, in]
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
    weight: Tensor | None = None,  # [heads * channels, in]
    factors: Tensor | None = None,  # [num_src, rank]: V, of which the structure is made; only with a mix
) -> Tensor:
    """A layer: W x, Eq. 4, 7 or 8, 9, where sources and targets are one kind of node.

    -> [num_dst, heads, channels], or [num_dst, 1, channels] of merged heads
    """
    parts = (att_src, att_dst, edge_logit, structure, mix_logit, eps_logit, bias, factors)
    served = serves(adj, h, weight, *parts) and att_src.size(0) <= MAX_HEADS
    if weight is not None and (not served or compiling()):  # the compiler has products of its own
        h, weight = project(h, weight).view(-1, *att_src.shape), None
    if served:
        mask, slope = mask_of(dropout, seed), float(negative_slope)
        return _Attend.apply(adj, slope, mask, merge, *contiguous(h, weight, *parts))
    if factors is not None:
        structure = factor_attention(adj, factors)[1]
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
    """Beside the products with W one call of the kernels each way: a small graph is spared the cost of
    several, and of several nodes. What is kept is one buffer, what is written on the way back another."""

    @staticmethod
    def forward(
        ctx: Any, adj: Adjacency, slope: float, mask: Mask, merge: bool, x: Tensor, weight: Any, *tensors: Any
    ) -> Tensor:
        att_src, mix_logit = tensors[0], tensors[4]
        heads, channels = att_src.shape
        h = x if weight is None else multiply(x, weight.t())  # [num_src, heads * channels]
        entries = adj.num_entries * (1 if mix_logit is None else 2)
        size = heads * (3 + adj.num_src + adj.num_dst + entries)
        kept = empty(h, size if tensors[-1] is None else size + adj.num_entries)
        out = empty(h, adj.num_dst, 1 if merge else heads, channels)
        run("attend", h.dtype, (), (kept, out), _layer(adj, None, (h, *tensors), slope, mask, merge))
        ctx.settings = (adj, slope, mask, merge)
        ctx.save_for_backward(x, weight, kept, h, *tensors)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight, kept, *tensors = ctx.saved_tensors
        h, att_src, _, edge_logit, structure, *small = tensors  # mix_logit, eps_logit, bias, factors
        (adj, *settings), back = ctx.settings, ctx.settings[0].transposed
        (heads, channels), grad = att_src.shape, kept_contiguous(grad)
        needs = ctx.needs_input_grad[4:]
        wanted = zip((edge_logit, structure, *small), needs[4:], strict=True)
        d_edge, d_structure, *d_small = (torch.empty_like(one) if need else None for one, need in wanted)
        d_h, d_att = empty(h, *h.shape), h.new_empty(2, heads, channels)
        size = MAX_CHUNKS * 2 * heads * channels * 8 // h.element_size()
        size += heads * (3 + adj.num_src + adj.num_dst + 2 * adj.num_entries) + adj.num_entries + adj.num_dst
        writes = (empty(h, size), d_edge, d_structure, d_h, d_att, *d_small)
        layer = _layer(adj, back, tensors, *settings)
        run("attend_backward", h.dtype, (kept, grad, back.place), writes, layer)
        d_weight = None if weight is None or not needs[1] else multiply(d_h.t(), x)
        d_x = d_h if weight is None else multiply(d_h, weight) if needs[0] else None
        return *(None,) * 4, d_x, d_weight, d_att[0], d_att[1], d_edge, d_structure, *d_small


def _layer(
    adj: Adjacency, back: Transposed | None, tensors: Parts, slope: float, mask: Mask, merge: bool
) -> Values:
    """The members of `Layer` in csrc/layer.h."""
    _, att_src, _, _, structure, mix_logit, eps_logit, _, factors = tensors
    sources = (None, None, None) if back is None else (back.rowptr, back.row, back.perm)
    width = 1 if structure is None else structure.shape[1:].numel()
    groups = next((logit.size(0) for logit in (mix_logit, eps_logit) if logit is not None), 0)
    rank = 0 if factors is None else factors.size(1)
    sizes = (adj.num_dst, adj.num_src, *att_src.shape, int(merge), width, groups, rank)
    return (adj.rowptr, adj.col, *sources, *sizes, *tensors, slope, *mask)
