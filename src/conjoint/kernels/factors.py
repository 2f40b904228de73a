"""What factors V are asked for in one walk: scores with their softmax, and the losses (csrc/factors.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from .library import partial_sums, run

LOSS_RANK = 8  # up to which a row of V is one vector


class _FactorAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factors: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
        score, attention = factors.new_empty(adj.num_entries), factors.new_empty(adj.num_entries)
        entries = (adj.rowptr, adj.col, adj.num_dst, factors.size(1))
        run("factor_attention", factors.dtype, *entries, factors, score, attention)
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
        adj: Adjacency = ctx.adj
        d_attention = torch.zeros_like(attention) if d_attention is None else d_attention.contiguous()
        d_score = None if d_score is None else d_score.contiguous()
        by_entry, d_factors = torch.empty_like(attention), torch.empty_like(factors)
        entries, back = (adj.rowptr, adj.col, adj.num_dst, factors.size(1)), adj.transposed
        grads = (d_attention, d_score, by_entry, d_factors)
        run("factor_attention_backward", factors.dtype, *entries, factors, attention, *grads)
        d_factors[adj.num_dst :] = 0  # those nodes only speak
        others = (back.rowptr, back.row, back.perm, *factors.shape)
        run("sum_rows", factors.dtype, *others, by_entry, None, factors, 1, d_factors)
        return d_factors, None


class _FactorLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factors: Tensor, score: Tensor, linked: Tensor, squares: float) -> Tensor:
        rows, rank = factors.shape
        gram, loss = factors.new_empty(rank, rank), factors.new_empty(())
        partial = partial_sums(factors, rank * rank + 1)
        shape, entries = (factors, rows, rank), (linked, score, score.numel())
        run("factor_loss", factors.dtype, *shape, *entries, float(squares), partial, gram, loss)
        ctx.save_for_backward(factors, gram, linked)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, gram, linked = ctx.saved_tensors
        d_factors, d_score = torch.empty_like(factors), torch.empty_like(linked)
        inputs = (factors, *factors.shape, gram, linked, linked.numel(), grad)
        run("factor_loss_backward", factors.dtype, *inputs, d_factors, d_score)
        return d_factors, d_score, None, None


class _ExpressionLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factors: Tensor, adj: Adjacency) -> Tensor:
        rank, back = factors.size(1), adj.transposed
        spread = torch.empty_like(factors)  # A^T V
        others = (back.rowptr, back.row, back.perm, *factors.shape)
        run("sum_rows", factors.dtype, *others, None, adj.simple, factors, 0, spread)
        grams, loss = factors.new_empty(2, rank, rank), factors.new_empty(())
        partial = partial_sums(factors, 2 * rank * rank)
        inputs = (factors, spread, *factors.shape, float(adj.num_simple))
        run("expression_loss", factors.dtype, *inputs, partial, grams, loss)
        ctx.adj = adj
        ctx.save_for_backward(factors, spread, grams)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, spread, grams = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        d_factors, d_spread = torch.empty_like(factors), torch.empty_like(spread)
        inputs = (factors, spread, *factors.shape, grams, grad)
        run("expression_loss_backward", factors.dtype, *inputs, d_factors, d_spread)
        entries = (adj.rowptr, adj.col, None, adj.num_dst, factors.size(1))
        run("sum_rows", factors.dtype, *entries, None, adj.simple, d_spread, 1, d_factors)
        return d_factors, None


def expression_loss(adj: Adjacency, factors: Tensor) -> Tensor:
    return _ExpressionLoss.apply(factors.contiguous(), adj)


def factor_loss(factors: Tensor, score: Tensor, linked: Tensor, squares: float) -> Tensor:
    return _FactorLoss.apply(factors.contiguous(), score.contiguous(), linked, squares)


class _GramNorm(torch.autograd.Function):
    """||V^T V||_F^2, whose gradient is 4 V (V^T V): one product where autograd makes two."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor) -> Tensor:
        gram = factors.t() @ factors  # [rank, rank]
        ctx.save_for_backward(factors, gram)
        return gram.square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        factors, gram = ctx.saved_tensors
        return factors @ (gram * (4.0 * grad))


def gram_norm(factors: Tensor) -> Tensor:
    return _GramNorm.apply(factors)


def factor_attention(adj: Adjacency, factors: Tensor) -> tuple[Tensor, Tensor]:
    return _FactorAttention.apply(factors.contiguous(), adj)
