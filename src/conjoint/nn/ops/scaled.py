"""One score for every entry, times a factor of each head, and the softmax of that (csrc/scaled.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency
from ...kernels.gradient import once_differentiable
from ...kernels.library import MAX_HEADS, run
from ...kernels.memory import contiguous as kept_contiguous
from ...kernels.memory import empty
from .entries import edge_softmax, serves


def scaled(adj: Adjacency, score: Tensor, factor: Tensor) -> Tensor:
    """[entries], [heads] -> [entries, heads]"""
    if serves(adj, score, factor) and factor.numel() <= MAX_HEADS:
        return _Scaled.apply(adj, False, score.contiguous(), factor.contiguous())
    return score.unsqueeze(1) * factor


def scaled_softmax(adj: Adjacency, score: Tensor, factor: Tensor) -> Tensor:
    """Eq. 5 of scaled scores: their softmax over N_i. [entries], [heads] -> [entries, heads]"""
    if serves(adj, score, factor) and factor.numel() <= MAX_HEADS:
        return _Scaled.apply(adj, True, score.contiguous(), factor.contiguous())
    return edge_softmax(adj, score.unsqueeze(1) * factor)


class _Scaled(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, softmax: bool, score: Tensor, factor: Tensor) -> Tensor:
        ctx.rows, heads = (adj.rowptr, adj.num_dst, factor.numel()), factor.numel()
        out = empty(score, score.numel(), heads)
        if softmax:
            run("scaled_softmax", score.dtype, (*ctx.rows, score, factor), (out,))
        else:
            run("scaled", score.dtype, (score, factor, score.numel(), heads), (out,))
        ctx.save_for_backward(score, factor, out if softmax else None)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor | None, Tensor]:
        score, factor, weight = ctx.saved_tensors
        entries, heads = score.numel(), factor.numel()
        d_scaled = None if weight is None else empty(score, entries, heads)
        d_score = torch.empty_like(score) if ctx.needs_input_grad[2] else None
        sums, d_factor = score.new_empty(entries // 16 + 1, heads), torch.empty_like(factor)
        reads = (*ctx.rows, score, factor, weight, kept_contiguous(grad))
        run("scaled_backward", score.dtype, reads, (d_scaled, sums, d_score, d_factor))
        return None, None, d_score, d_factor
