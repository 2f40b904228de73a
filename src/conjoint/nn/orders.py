"""The two orders in which a layer can be computed: W first and then the neighbours, or the neighbours first.

Both give the same result; which one is cheaper is a matter of shapes.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear, is_uninitialized_parameter

from ..graph.adjacency import Adjacency
from . import checks, ops
from .attention import Logits, Structure, Weights, conjoint_weights

if TYPE_CHECKING:
    from .conv import CATConv

Dropout = tuple[float, Tensor]  # share and seed


def projected(
    conv: "CATConv", x_src: Tensor, x_dst: Tensor | None, x_dropout: Dropout | None
) -> tuple[Tensor, Tensor | None]:
    """W x of sources and targets: one tensor where they are nodes of one kind. [nodes, heads, out]"""
    shape = (-1, conv.heads, conv.out_channels)
    lin_src, lin_dst = (conv.lin or conv.lin_src), (conv.lin or conv.lin_dst)
    h_src = project(lin_src, x_src, x_dropout).view(shape)
    if x_dst is x_src and lin_src is lin_dst:
        return h_src, h_src
    return h_src, None if x_dst is None else project(lin_dst, x_dst, x_dropout).view(shape)


def transform_first(
    conv: "CATConv",
    adj: Adjacency,
    h_src: Tensor,
    h_dst: Tensor | None,
    structure: Structure | None,
    edge_logit: Tensor | None,
    with_parts: bool,
) -> tuple[Tensor, Weights | None]:
    """After W x, the weighted sum over neighbours. -> [targets, heads, out]"""
    one_kind = h_dst is h_src
    logits = None
    if one_kind and not with_parts and _fuses(conv, adj):
        return _attend(conv, adj, h_src, structure, edge_logit), None
    if conv.att_src is not None and conv.att_dst is not None:
        att_src, att_dst = conv.att_src.squeeze(0), conv.att_dst.squeeze(0)
        a_dst: Tensor | None = None
        if one_kind:
            a_src, a_dst = ops.head_dots(h_src, att_src, att_dst)  # [sources, heads]
            a_dst = _first(a_dst, adj.num_dst)
        else:
            a_src = ops.head_dot(h_src, att_src)
            a_dst = None if h_dst is None else ops.head_dot(_first(h_dst, adj.num_dst), att_dst)
        logits = Logits(a_src, a_dst, edge_logit, conv.negative_slope)
    weights = conjoint_weights(adj, logits, structure, conv.mix, conv.heads, with_parts)
    # The fused self term reads row i of the sources as target i, without dropout of its own.
    fused, eps = one_kind and not conv.drops_self_term, conv.eps
    out = _sum(conv, adj, weights.alpha, h_src, eps if fused else None)
    if eps is not None and not fused and h_dst is not None:
        own = ops.activate_and_drop(_first(h_dst, adj.num_dst), "none", *conv.self_drop(h_dst))
        share = eps / adj.degree.clamp(min=1).unsqueeze(1)
        out = out + share.unsqueeze(2).to(own.dtype) * own
    return out, weights


def _attend(
    conv: "CATConv", adj: Adjacency, h: Tensor, structure: Structure | None, edge_logit: Tensor | None
) -> Tensor:
    """All after W x in one operation, where nobody asks for the weights. -> [targets, heads or 1, out]"""
    assert conv.att_src is not None and conv.att_dst is not None
    mix_logit = None if structure is None else conv.mix_logit
    scores = None if structure is None else structure.score if mix_logit is None else structure.attention
    scores = None if scores is None else scores.to(h.dtype)
    parts = (conv.att_src.squeeze(0), conv.att_dst.squeeze(0), edge_logit, scores, mix_logit, conv.eps_logit)
    merge = not conv.concat and conv.residual != "per-head"  # else each head is still wanted
    return ops.attend(adj, h, *parts, conv.negative_slope, *conv.attention_drop(h), merge)


def _fuses(conv: "CATConv", adj: Adjacency) -> bool:
    plain = not conv.drops_self_term and not conv.is_watched and adj.log_weight is None
    return plain and conv.att_src is not None


def aggregate_first(
    conv: "CATConv",
    adj: Adjacency,
    x: Tensor,
    structure: Structure | None,
    edge_logit: Tensor | None,
    with_parts: bool,
) -> tuple[Tensor, Weights]:
    """The weighted sum over neighbours, then W: the same output, cheaper where W widens x."""
    assert conv.lin is not None
    checks.width(x, conv.lin.in_channels)
    weight = conv.lin.weight.view(conv.heads, conv.out_channels, -1)  # [heads, out, in]
    logits = None
    if conv.att_src is not None and conv.att_dst is not None:
        # <W_h x, att_h> = <x, W_h^T att_h>: W x itself is not needed.
        att = torch.cat([conv.att_src, conv.att_dst])
        both = x @ torch.einsum("hci,vhc->ivh", weight, att).flatten(1)  # [sources, 2 * heads]
        a_src, a_dst = both[:, : conv.heads], _first(both[:, conv.heads :], adj.num_dst)
        logits = Logits(a_src, a_dst, edge_logit, conv.negative_slope)
    weights = conjoint_weights(adj, logits, structure, conv.mix, conv.heads, with_parts)
    dropout, seed = conv.attention_drop(x)
    parts = (weights.alpha, x.unsqueeze(1), weight, conv.eps)
    return ops.aggregate_and_project(adj, *parts, dropout, seed), weights


def aggregates_first(conv: "CATConv", x_src: Tensor, x_dst: Tensor | None) -> bool:
    initialise(conv.lin, x_src)
    return (
        conv.lin is not None
        and x_dst is x_src
        and x_src.layout == torch.strided
        and x_src.size(1) < conv.heads * conv.out_channels
        and not conv.drops_self_term
        and not conv.is_watched
    )


def _sum(conv: "CATConv", adj: Adjacency, alpha: Tensor, x: Tensor, eps: Tensor | None) -> Tensor:
    """Eq. 9. -> [targets, heads, channels]"""
    dropout, seed = conv.attention_drop(x)
    if not conv.is_watched:
        return ops.aggregate(adj, alpha, x, eps, dropout, seed)
    # Explainers look at messages: let PyG make them, one per edge in the user's order.
    if seed is not None:
        alpha = ops.drop(alpha, dropout, seed)
    out = conv.pass_messages(adj, alpha, x)
    if eps is not None:
        out = out + (eps / adj.degree.clamp(min=1).unsqueeze(1)).unsqueeze(2) * x[: adj.num_dst]
    return out


def project(linear: Linear | None, x: Tensor, dropout: Dropout | None) -> Tensor:
    assert linear is not None
    initialise(linear, x)
    checks.width(x, linear.in_channels)
    if x.layout == torch.sparse_csr:
        return ops.sparse_project(x, linear.weight, *(dropout or (0.0, None)))
    return ops.project(x, linear.weight)


def initialise(linear: Linear | None, x: Tensor) -> None:
    """Give a lazy weight its shape now: the layer reads weights without calling the module."""
    if linear is not None and is_uninitialized_parameter(linear.weight):
        linear.initialize_parameters(linear, (x,))


def _first(rows: Tensor, count: int) -> Tensor:
    """A slice of everything would only cost a copy in the backward pass."""
    return rows if rows.size(0) == count else rows[:count]
