"""Eq. 9: weighted sums of neighbours, dropout on the weights, the self term (csrc/aggregation.h)."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from . import dropout as dropping
from .library import address, partial_sums, run
from .registry import is_fake, operation


class _Inputs(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rowptr", "col", "back_rowptr", "back_row", "back_perm")),
        *((name, ctypes.c_int64) for name in ("rows", "sources", "heads", "x_heads", "channels")),
        *((name, ctypes.c_void_p) for name in ("alpha", "x", "self_weight", "seed")),
        ("threshold", ctypes.c_int64),
        ("scale", ctypes.c_double),
    )


@operation
def _aggregate(
    rowptr: Tensor,
    col: Tensor,
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None,
    seed: Tensor | None,
    dropout: float,
) -> Tensor:
    out = x.new_empty(rowptr.numel() - 1, alpha.size(1), x.size(2))
    if not is_fake(out):
        inputs = _inputs((rowptr, col, None, None, None), alpha, x, self_weight, seed, dropout)
        run("aggregate", out.dtype, inputs, out)
    return out


@operation
def _aggregate_backward(
    rowptr: Tensor,
    col: Tensor,
    back_rowptr: Tensor | None,
    back_row: Tensor | None,
    back_perm: Tensor | None,
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(d alpha, d x, d self_weight); d x is empty without the order by source, d self_weight without one."""
    d_alpha = torch.empty_like(alpha)
    d_x = x.new_empty(0) if back_rowptr is None else torch.empty_like(x)
    d_self = x.new_empty(0) if self_weight is None else torch.empty_like(self_weight)
    if not is_fake(d_alpha):
        graph = (rowptr, col, back_rowptr, back_row, back_perm)
        inputs = _inputs(graph, alpha, x, self_weight, seed, dropout)
        sums = (None, None) if self_weight is None else (partial_sums(x, alpha.size(1)), d_self)
        if back_rowptr is None:
            run("aggregate_backward_alpha", x.dtype, inputs, grad, d_alpha, *sums)
        else:
            run("aggregate_backward", x.dtype, inputs, grad, d_x, d_alpha, *sums)
    return d_alpha, d_x, d_self


def _inputs(
    graph: tuple[Tensor | None, ...],
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None,
    seed: Tensor | None,
    dropout: float,
) -> Any:
    rows = graph[0].numel() - 1 if graph[0] is not None else 0
    places = (address(alpha), address(x), address(self_weight), address(seed))
    factor = 1.0 if seed is None else dropping.scale(dropout)
    return ctypes.byref(
        _Inputs(
            *map(address, graph),
            *(rows, x.size(0), alpha.size(1), x.size(1), x.size(2)),
            *places,
            *(dropping.threshold(dropout), factor),
        )
    )


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        alpha: Tensor,
        x: Tensor,
        self_weight: Tensor | None,
        seed: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor | None,
        back_row: Tensor | None,
        back_perm: Tensor | None,
        dropout: float,
    ) -> Tensor:
        ctx.dropout = dropout
        ctx.save_for_backward(rowptr, col, back_rowptr, back_row, back_perm, alpha, x, self_weight, seed)
        return _aggregate(rowptr, col, alpha, x, self_weight, seed, dropout)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        *graph_and_inputs, seed = ctx.saved_tensors
        call: Any = _aggregate_backward
        d_alpha, d_x, d_self = call(*graph_and_inputs, seed, ctx.dropout, grad.contiguous())
        needs = ctx.needs_input_grad
        found = (d_alpha if needs[0] else None, d_x if needs[1] else None, d_self if needs[2] else None)
        return *found, *(None,) * 7


def aggregate(
    adj: Adjacency,
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    back: tuple[Tensor | None, ...] = (None, None, None)
    if torch.is_grad_enabled() and x.requires_grad:
        back = (adj.transposed.rowptr, adj.transposed.row, adj.transposed.perm)
    return _Aggregate.apply(
        *(alpha.contiguous(), x.contiguous(), None if self_weight is None else self_weight.contiguous()),
        *(dropping.in_use(dropout, seed), adj.rowptr, adj.col, *back, dropout),
    )
