"""The operations that the layers call: compiled kernels where they serve, plain torch elsewhere.

The definitions, with shapes, are in `reference`; the kernels compute the same functions.
"""

import torch
from torch import Tensor

from .. import kernels
from ..graph.adjacency import Adjacency
from ..kernels import activation as fast_activation
from ..kernels import aggregation as fast_aggregation
from ..kernels import attend as fast_attend
from ..kernels import attention as fast_attention
from ..kernels import factors as fast_factors
from ..kernels import projection as fast_projection
from ..kernels import structure as fast_structure
from ..kernels.library import MAX_HEADS
from . import reference


def _served(*tensors: Tensor | None) -> bool:
    """Whether the kernels take these tensors: on the CPU, one float type, nothing empty."""
    first = tensors[0]
    if first is None or first.dtype not in (torch.float32, torch.float64) or not kernels.active():
        return False
    return all(
        tensor is None or (tensor.dtype == first.dtype and tensor.device.type == "cpu" and tensor.numel() > 0)
        for tensor in tensors
    )


def targets(adj: Adjacency, per_source: Tensor) -> Tensor:
    """Targets are the first sources; a slice of everything would only cost a copy in the backward pass."""
    return per_source if adj.num_dst == per_source.size(0) else per_source[: adj.num_dst]


def segment_sum(adj: Adjacency, per_entry: Tensor) -> Tensor:
    if adj.num_entries and _served(per_entry):
        return fast_structure.segment_sum(adj, per_entry)
    return reference.segment_sum(adj, per_entry)


def edge_softmax(adj: Adjacency, logit: Tensor) -> Tensor:
    if _served(logit) and logit.shape[1:].numel() <= MAX_HEADS:
        return fast_attention.edge_softmax(adj, logit)
    return reference.edge_softmax(adj, logit)


def edge_dot(adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    if adj.num_entries and _served(left, right):
        return fast_structure.edge_dot(adj, left, right)
    return reference.edge_dot(adj, left, right)


def factor_attention(adj: Adjacency, factors: Tensor) -> tuple[Tensor, Tensor]:
    """<V_i, V_j> of every entry, and their softmax over each row. [num_src, rank] -> [entries], [entries]"""
    if adj.num_entries and _served(factors) and not torch.compiler.is_compiling():
        return fast_factors.factor_attention(adj, factors)
    score = edge_dot(adj, targets(adj, factors), factors)
    return score, edge_softmax(adj, score)


def factor_loss(adj: Adjacency, factors: Tensor, score: Tensor) -> Tensor:
    """||A - V V^T||_F^2 = ||A||^2 - 2 <A, C> + ||V^T V||_F^2, with C_ij at hand. -> scalar"""
    linked = adj.simple_weight.to(score.dtype)
    if _narrow(adj, factors) and score.dtype == factors.dtype:
        return fast_factors.factor_loss(factors, score, linked, adj.num_simple)
    return adj.num_simple - 2.0 * torch.dot(linked, score) + gram_norm(factors)


def gram_norm(factors: Tensor) -> Tensor:
    """||V^T V||_F^2, on any device. -> scalar"""
    return fast_factors.gram_norm(factors)


def expression_loss(adj: Adjacency, factors: Tensor) -> Tensor:
    """||A - V V^T A||_F^2 = ||A||^2 - 2 tr(H) + <H, V^T V> with H = S^T S, S = A^T V. -> scalar"""
    if _narrow(adj, factors):
        return fast_factors.expression_loss(adj, factors)
    spread_out = spread(adj, targets(adj, factors))  # [num_src, rank]
    spread_gram = spread_out.t() @ spread_out
    return adj.num_simple - 2.0 * torch.trace(spread_gram) + (spread_gram * (factors.t() @ factors)).sum()


def _narrow(adj: Adjacency, factors: Tensor) -> bool:
    """Whether a row of V is one vector of the kernels."""
    fits = factors.size(1) <= fast_factors.LOSS_RANK and adj.num_entries > 0
    return fits and _served(factors) and not torch.compiler.is_compiling()


def edge_total(adj: Adjacency, factors: Tensor) -> Tensor:
    if adj.num_entries and _served(factors):
        return fast_structure.edge_total(adj, factors)
    return reference.edge_total(adj, factors)


def spread(adj: Adjacency, factors: Tensor) -> Tensor:
    if adj.num_entries and _served(factors):
        return fast_structure.spread(adj, factors)
    return reference.spread(adj, factors)


def attention(
    adj: Adjacency,
    a_src: Tensor,
    a_dst: Tensor | None,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix: Tensor | None,
    negative_slope: float,
    explicit: bool,
) -> tuple[Tensor, Tensor]:
    inputs = (a_src, a_dst, edge_logit, structure, mix)
    if adj.num_entries and _served(*inputs) and a_src.size(1) <= MAX_HEADS:
        return fast_attention.attention(adj, *inputs, negative_slope, explicit)
    return reference.attention(adj, *inputs, negative_slope, explicit)


def aggregate(
    adj: Adjacency,
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    if adj.num_entries and _served(alpha, x, self_weight) and alpha.size(1) <= MAX_HEADS:
        return fast_aggregation.aggregate(adj, alpha, x, self_weight, dropout, seed)
    return reference.aggregate(adj, alpha, x, self_weight, dropout, seed)


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
    dropout: float = 0.0,
    seed: Tensor | None = None,
    merge: bool = False,  # the mean of the heads
) -> Tensor:
    parts = (h, att_src, att_dst, edge_logit, structure, mix_logit, eps_logit)
    if torch.compiler.is_compiling():  # in pieces, each of them a kernel
        mix, self_weight = reference.shares(mix_logit, eps_logit, h.size(1))
        a_src, a_dst = head_dots(h, att_src, att_dst)
        if structure is not None and structure.dim() == 1:
            structure = structure.unsqueeze(1)
        inputs = (a_src, a_dst[: adj.num_dst], edge_logit, structure, mix)
        alpha, _ = attention(adj, *inputs, negative_slope, explicit=mix is None)
        out = aggregate(adj, alpha, h, self_weight, dropout, seed)
        return out.mean(dim=1, keepdim=True) if merge else out
    if adj.num_entries and _served(*parts) and h.size(1) <= MAX_HEADS:
        return fast_attend.attend(adj, *parts, negative_slope, dropout, seed, merge)
    return reference.attend(adj, *parts, negative_slope, dropout, seed, merge)


def aggregate_and_project(
    adj: Adjacency,
    alpha: Tensor,
    x: Tensor,
    weight: Tensor,
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    if torch.compiler.is_compiling():
        return reference.head_project(aggregate(adj, alpha, x, self_weight, dropout, seed), weight)
    if adj.num_entries and _served(alpha, x, weight, self_weight) and alpha.size(1) <= MAX_HEADS:
        return fast_aggregation.aggregate_and_project(adj, alpha, x, weight, self_weight, dropout, seed)
    return reference.aggregate_and_project(adj, alpha, x, weight, self_weight, dropout, seed)


def head_dot(x: Tensor, att: Tensor) -> Tensor:
    return fast_projection.head_dot(x, att) if _served(x, att) else reference.head_dot(x, att)


def head_dots(x: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, Tensor]:
    if _served(x, att_src, att_dst):
        return fast_projection.head_dots(x, att_src, att_dst)
    return reference.head_dots(x, att_src, att_dst)


def project(x: Tensor, weight: Tensor) -> Tensor:
    if _served(x, weight) and x.dim() == 2 and not torch.compiler.is_compiling():
        return fast_projection.project(x, weight)
    return reference.project(x, weight)


def sparse_project(x: Tensor, weight: Tensor, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    if _served(weight) and x.dtype == weight.dtype and x.col_indices().dtype == torch.int64:
        return fast_projection.sparse_project(x, weight, dropout, seed)
    return reference.sparse_project(x, weight, dropout, seed)


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    if x.layout == torch.sparse_csr and _served(x.values()):
        values = fast_activation.activate_and_drop(x.values(), "none", dropout, seed)
        return reference.with_values(x, values)
    if x.layout == torch.strided and _served(x):
        return fast_activation.activate_and_drop(x, "none", dropout, seed)
    return reference.drop(x, dropout, seed)


def activate_and_drop(x: Tensor, activation: str, dropout: float, seed: Tensor | None) -> Tensor:
    if _served(x):
        return fast_activation.activate_and_drop(x, activation, dropout, seed)
    return reference.activate_and_drop(x, activation, dropout, seed)
