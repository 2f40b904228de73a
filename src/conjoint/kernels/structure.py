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
def _edge_dot(
    rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor, simple: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(score per entry, sum over the simple entries or empty)."""
    out = left.new_empty(col.numel())
    total = left.new_empty(() if simple is not None else 0)
    if not is_fake(out):
        partial = partial_sums(left, 1)
        shape = (rowptr.numel() - 1, left.size(1))
        run("edge_dot", out.dtype, rowptr, col, *shape, left, right, simple, out, partial, total)
    return out, total


@operation
def _sum_rows(
    rowptr: Tensor,
    other: Tensor,
    perm: Tensor | None,
    value: Tensor | None,
    simple: Tensor | None,
    level: Tensor | None,
    x: Tensor,
) -> Tensor:
    """Sum over a row's entries of (value + [simple] level) x[other]. -> [rows, rank]"""
    rows = rowptr.numel() - 1
    out = x.new_empty(rows, x.size(1))
    if not is_fake(out):
        run("sum_rows", out.dtype, rowptr, other, perm, rows, x.size(1), value, simple, level, x, 0, out)
    return out


class _EdgeDot(torch.autograd.Function):
    """Without a right side the left one stands on both, and its gradient gathers both."""

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor | None,
        simple: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor | None,
        back_row: Tensor | None,
        back_perm: Tensor | None,
    ) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(left, right, simple, rowptr, col, back_rowptr, back_row, back_perm)
        score, total = _edge_dot(rowptr, col, left, left if right is None else right, simple)
        return score if simple is None else (score, total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, level: Tensor | None = None) -> Any:
        left, right, simple, rowptr, col, back_rowptr, back_row, back_perm = ctx.saved_tensors
        if grad is None and level is None:
            return (None,) * 8
        grad = None if grad is None else grad.contiguous()
        counted = None if level is None else simple
        d_left = d_right = None
        if ctx.needs_input_grad[0]:
            d_left = _sum_rows(rowptr, col, None, grad, counted, level, left if right is None else right)
        if (
            right is None
            and back_rowptr is not None
            and d_left is not None
            and not torch.compiler.is_compiling()
        ):
            entries = (back_rowptr, back_row, back_perm, left.size(0), left.size(1))
            run("sum_rows", left.dtype, *entries, grad, counted, level, left, 1, d_left)
            return d_left, *(None,) * 7
        if back_rowptr is not None:
            d_right = _sum_rows(back_rowptr, back_row, back_perm, grad, counted, level, left)
        if right is None and d_left is not None and d_right is not None:
            return d_left.add_(d_right), *(None,) * 7
        return d_left, d_right, *(None,) * 6


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
        return _sum_rows(back_rowptr, back_row, back_perm, None, simple, None, factors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        simple, rowptr, col = ctx.saved_tensors
        return _sum_rows(rowptr, col, None, None, simple, None, grad.contiguous()), *(None,) * 6


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
    return _scores(adj, left, right, None)


def edge_dot_total(adj: Adjacency, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    return _scores(adj, left, right, adj.simple)


def spread(adj: Adjacency, factors: Tensor) -> Tensor:
    back = adj.transposed
    return _Spread.apply(
        factors.contiguous(), adj.simple, adj.rowptr, adj.col, back.rowptr, back.row, back.perm
    )


def _scores(adj: Adjacency, left: Tensor, right: Tensor, simple: Tensor | None) -> Any:
    back: tuple[Tensor | None, ...] = (None, None, None)
    if torch.is_grad_enabled() and right.requires_grad:
        back = (adj.transposed.rowptr, adj.transposed.row, adj.transposed.perm)
    other = None if right is left else right.contiguous()
    return _EdgeDot.apply(left.contiguous(), other, simple, adj.rowptr, adj.col, *back)
