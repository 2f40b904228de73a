"""Factors V of a learned intervention: their scores with the softmax, and the losses (csrc/factors.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency
from ...kernels.gradient import once_differentiable
from ...kernels.library import partial_sums, run
from ...recording import compiling, direct
from .entries import contiguous, edge_dot, edge_softmax, serves, spread, sum_rows, targets

LOSS_RANK = 8  # up to which a row of V is one vector of the kernels of the losses


def factor_attention(adj: Adjacency, factors: Tensor) -> tuple[Tensor, Tensor]:
    """<V_i, V_j> of every entry, and their softmax over each row. [num_src, rank] -> [entries], [entries]"""
    if serves(adj, factors):
        return _FactorAttention.apply(adj, factors.contiguous())
    score = edge_dot(adj, targets(adj, factors), factors)
    return score, edge_softmax(adj, score)


class _FactorAttention(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, factors: Tensor) -> tuple[Tensor, Tensor]:
        score, attention = factors.new_empty(adj.num_entries), factors.new_empty(adj.num_entries)
        reads = (adj.rowptr, adj.col, adj.num_dst, *factors.shape, factors)
        run("factor_attention", factors.dtype, reads, (score, attention))
        ctx.adj = adj
        ctx.save_for_backward(factors, attention)
        ctx.set_materialize_grads(False)
        return score, attention

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_score: Tensor | None, d_attention: Tensor | None) -> Any:
        factors, attention = ctx.saved_tensors
        if d_score is None and d_attention is None:
            return None, None
        grads = contiguous(torch.zeros_like(attention) if d_attention is None else d_attention, d_score)
        by_entry, d_factors = torch.empty_like(attention), torch.empty_like(factors)
        adj, back = ctx.adj, ctx.adj.transposed
        entries = (adj.rowptr, adj.col, back.rowptr, back.row, back.perm, adj.num_dst, *factors.shape)
        reads = (*entries, factors, attention, *grads)
        run("factor_attention_backward", factors.dtype, reads, (by_entry, d_factors))
        return None, d_factors


def factor_loss(adj: Adjacency, factors: Tensor, score: Tensor) -> Tensor:
    """||A - V V^T||_F^2 = ||A||^2 - 2 <A, C> + ||V^T V||_F^2, with C_ij at hand. -> scalar"""
    linked = adj.simple_weight.to(score.dtype)
    if serves(adj, factors, score) and factors.size(1) <= LOSS_RANK:
        return _FactorLoss.apply(float(adj.num_simple), linked, *contiguous(factors, score))
    return adj.num_simple - 2.0 * torch.dot(linked, score) + gram_norm(factors)


class _FactorLoss(Function):
    @staticmethod
    def forward(ctx: Any, squares: float, linked: Tensor, factors: Tensor, score: Tensor) -> Tensor:
        rank = factors.size(1)
        gram, loss = factors.new_empty(rank, rank), factors.new_empty(())
        reads = (factors, *factors.shape, linked, score, score.numel(), squares)
        run("factor_loss", factors.dtype, reads, (partial_sums(factors, rank * rank + 1), gram, loss))
        ctx.save_for_backward(factors, gram, linked)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, gram, linked = ctx.saved_tensors
        d_factors, d_score = torch.empty_like(factors), torch.empty_like(linked)
        reads = (factors, *factors.shape, gram, linked, linked.numel(), grad)
        run("factor_loss_backward", factors.dtype, reads, (d_factors, d_score))
        return None, None, d_factors, d_score


def gram_norm(factors: Tensor) -> Tensor:
    """||V^T V||_F^2, on any device. [num_src, rank] -> scalar"""
    if compiling() or direct(factors):
        return _GramNorm.apply(factors)
    return (factors.t() @ factors).square().sum()


class _GramNorm(Function):
    """The gradient is 4 V (V^T V): one product where autograd makes two."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor) -> Tensor:
        gram = (factors.t() @ factors).to(factors.dtype)  # [rank, rank]; autocast makes it smaller
        ctx.save_for_backward(factors, gram)
        return gram.square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        factors, gram = ctx.saved_tensors
        return factors @ (gram * (4.0 * grad))


def expression_loss(adj: Adjacency, factors: Tensor) -> Tensor:
    """||A - V V^T A||_F^2 = ||A||^2 - 2 tr(H) + <H, V^T V> with H = S^T S, S = A^T V. -> scalar"""
    if serves(adj, factors) and factors.size(1) <= LOSS_RANK:
        return _ExpressionLoss.apply(adj, factors.contiguous())
    s = spread(adj, targets(adj, factors))  # [num_src, rank]
    h = s.t() @ s
    return adj.num_simple - 2.0 * torch.trace(h) + (h * (factors.t() @ factors)).sum()


class _ExpressionLoss(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, factors: Tensor) -> Tensor:
        rank, s = factors.size(1), sum_rows(adj.transposed, adj.simple, factors)
        grams, loss = factors.new_empty(2, rank, rank), factors.new_empty(())
        reads = (factors, s, *factors.shape, float(adj.num_simple))
        run("expression_loss", factors.dtype, reads, (partial_sums(factors, 2 * rank * rank), grams, loss))
        ctx.adj = adj
        ctx.save_for_backward(factors, s, grams)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, s, grams = ctx.saved_tensors
        d_factors, d_s = torch.empty_like(factors), torch.empty_like(s)
        reads = (factors, s, *factors.shape, grams, grad)
        run("expression_loss_backward", factors.dtype, reads, (d_factors, d_s))
        return None, sum_rows(ctx.adj, ctx.adj.simple, d_s, onto=d_factors)
