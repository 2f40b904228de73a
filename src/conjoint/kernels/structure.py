"""Structural scores per entry, and sums over entries (csrc/structure.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from .library import partial_sums, run
from .registry import is_fake, operation


@operation
def sum_entries(rowptr: Tensor, perm: Tensor | None, value: Tensor) -> Tensor:
    """Sum of [entries, k] over the entries of each row, read through `perm` if there is one. -> [rows, k]"""
    rows = rowptr.numel() - 1
    out = value.new_empty(rows, *value.shape[1:])
    if not is_fake(out):
        run("sum_entries", out.dtype, rowptr, perm, rows, value.shape[1:].numel(), value, out)
    return out


@operation
def _edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    out = left.new_empty(col.numel())
    if not is_fake(out):
        run("edge_dot", out.dtype, rowptr, col, rowptr.numel() - 1, left.size(1), left, right, out)
    return out


@operation
def _sum_rows(
    rowptr: Tensor, other: Tensor, perm: Tensor | None, value: Tensor | None, simple: Tensor | None, x: Tensor
) -> Tensor:
    """Sum over a row's entries (only the simple ones, if told which) of value x[other]. -> [rows, rank]"""
    out = x.new_empty(rowptr.numel() - 1, x.size(1))
    if not is_fake(out):
        run("sum_rows", out.dtype, rowptr, other, perm, *out.shape, value, simple, x, 0, out)
    return out


@operation
def _dot_total(left: Tensor, right: Tensor) -> Tensor:
    """<left, right>, the same bits at any number of threads, which torch.dot does not promise."""
    total = left.new_empty(())
    if not is_fake(total):
        run("dot_total", left.dtype, left, right, right.numel(), partial_sums(left, 1), total)
    return total


class _EdgeDot(torch.autograd.Function):
    """Without a right side the left one stands on both, and its gradient gathers both."""

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor | None,
        back_row: Tensor | None,
        back_perm: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(left, right, rowptr, col, back_rowptr, back_row, back_perm)
        return _edge_dot(rowptr, col, left, left if right is None else right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        left, right, rowptr, col, back_rowptr, back_row, back_perm = ctx.saved_tensors
        grad = grad.contiguous()
        d_left = d_right = None
        if ctx.needs_input_grad[0]:
            d_left = _sum_rows(rowptr, col, None, grad, None, left if right is None else right)
        if right is None and d_left is not None and not torch.compiler.is_compiling():
            entries = (back_rowptr, back_row, back_perm, *left.shape)
            run("sum_rows", left.dtype, *entries, grad, None, left, 1, d_left)
            return d_left, *(None,) * 6
        if back_rowptr is not None:
            d_right = _sum_rows(back_rowptr, back_row, back_perm, grad, None, left)
        if right is None and d_left is not None and d_right is not None:
            return d_left.add_(d_right), *(None,) * 6
        return d_left, d_right, *(None,) * 5


class _EdgeTotal(torch.autograd.Function):
    """<A, V V^T> = <V, A V>, with the gradient A V + A^T V, which is twice A V where A is symmetric."""

    @staticmethod
    def forward(
        ctx: Any,
        factors: Tensor,
        simple: Tensor,
        symmetric: bool,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor,
        back_row: Tensor,
        back_perm: Tensor,
    ) -> Tensor:
        heard = _sum_rows(rowptr, col, None, None, simple, factors)
        ctx.symmetric = symmetric
        ctx.save_for_backward(factors, heard, simple, back_rowptr, back_row, back_perm)
        return _dot_total(factors[: heard.size(0)], heard)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, heard, simple, back_rowptr, back_row, back_perm = ctx.saved_tensors
        if ctx.symmetric:
            return heard * (2.0 * grad), *(None,) * 7
        targets = factors[: heard.size(0)].contiguous()
        d_factors = _sum_rows(back_rowptr, back_row, back_perm, None, simple, targets)
        d_factors[: heard.size(0)] += heard
        return d_factors * grad, *(None,) * 7


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        factors: Tensor,
        simple: Tensor,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor,
        back_row: Tensor,
        back_perm: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(simple, rowptr, col)
        return _sum_rows(back_rowptr, back_row, back_perm, None, simple, factors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        simple, rowptr, col = ctx.saved_tensors
        return _sum_rows(rowptr, col, None, None, simple, grad.contiguous()), *(None,) * 6


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, rowptr: Tensor, row: Tensor) -> Tensor:
        ctx.save_for_backward(row)
        return sum_entries(rowptr, None, value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad[ctx.saved_tensors[0]], None, None


def segment_sum(adj: Adjacency, per_entry: Tensor) -> Tensor:
    return _SegmentSum.apply(per_entry.contiguous(), adj.rowptr, adj.row)


def edge_dot(adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    back: tuple[Tensor | None, ...] = (None, None, None)
    if torch.is_grad_enabled() and right.requires_grad:
        back = (adj.transposed.rowptr, adj.transposed.row, adj.transposed.perm)
    other = None if right is left else right.contiguous()
    return _EdgeDot.apply(left.contiguous(), other, adj.rowptr, adj.col, *back)


def edge_total(adj: Adjacency, factors: Tensor) -> Tensor:
    back = adj.transposed
    parts = (adj.rowptr, adj.col, back.rowptr, back.row, back.perm)
    return _EdgeTotal.apply(factors.contiguous(), adj.simple, adj.symmetric, *parts)


def spread(adj: Adjacency, factors: Tensor) -> Tensor:
    back = adj.transposed
    return _Spread.apply(
        factors.contiguous(), adj.simple, adj.rowptr, adj.col, back.rowptr, back.row, back.perm
    )
