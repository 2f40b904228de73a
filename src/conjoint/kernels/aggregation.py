"""Eq. 9: weighted sums of neighbours, dropout on the weights, the self term (csrc/aggregation.h)."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from . import dropout as dropping
from .library import address, partial_sums, run
from .ownership import LARGE_BYTES
from .registry import is_fake, operation
from .workspace import empty


class _Inputs(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rowptr", "col", "back_rowptr", "back_row", "back_perm")),
        *((name, ctypes.c_int64) for name in ("rows", "sources", "heads", "x_heads", "channels", "merged")),
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
    merge: bool = False,
) -> Tensor:
    out = empty(x, rowptr.numel() - 1, 1 if merge else alpha.size(1), x.size(2))
    if not is_fake(out):
        inputs = _inputs((rowptr, col, None, None, None), alpha, x, self_weight, seed, dropout, merge)
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
    merge: bool = False,
    with_alpha: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """(d alpha, d x, d self_weight); d x is empty without the order by source, d self_weight without one.

    d alpha is empty if it is not wanted and d x is.
    """
    with_alpha = with_alpha or back_rowptr is None
    d_alpha = empty(alpha, *alpha.shape) if with_alpha else alpha.new_empty(0)
    d_x = x.new_empty(0) if back_rowptr is None else empty(x, *x.shape)
    d_self = x.new_empty(0) if self_weight is None else torch.empty_like(self_weight)
    if not is_fake(d_alpha):
        graph = (rowptr, col, back_rowptr, back_row, back_perm)
        inputs = _inputs(graph, alpha, x, self_weight, seed, dropout, merge)
        sums = (None, None) if self_weight is None else (partial_sums(x, alpha.size(1)), d_self)
        if back_rowptr is None:
            run("aggregate_backward_alpha", x.dtype, inputs, grad, d_alpha, *sums)
        else:
            rows = torch.empty(rowptr.numel() - 1, dtype=torch.uint8)
            run(
                "aggregate_backward", x.dtype, inputs, grad, rows, d_x, d_alpha if with_alpha else None, *sums
            )
    return d_alpha, d_x, d_self


def _inputs(
    graph: tuple[Tensor | None, ...],
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    merge: bool,
) -> Any:
    rows = graph[0].numel() - 1 if graph[0] is not None else 0
    places = (address(alpha), address(x), address(self_weight), address(seed))
    factor = 1.0 if seed is None else dropping.scale(dropout)
    return ctypes.byref(
        _Inputs(
            *map(address, graph),
            *(rows, x.size(0), alpha.size(1), x.size(1), x.size(2), int(merge)),
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
        needs = ctx.needs_input_grad
        call: Any = _aggregate_backward
        d_alpha, d_x, d_self = call(
            *graph_and_inputs, seed, ctx.dropout, grad.contiguous(), with_alpha=needs[0]
        )
        found = (d_alpha if needs[0] else None, d_x if needs[1] else None, d_self if needs[2] else None)
        return *found, *(None,) * 7


class _AggregateProject(torch.autograd.Function):
    """Aggregate, then one product per head, each written straight into its columns of the result.

    The sums between the two are needed again for the gradient of the weight. Where they are large they are
    not kept but summed anew, which costs one more walk and saves the memory at the moment of its peak; their
    gradient then takes their place.
    """

    @staticmethod
    def forward(
        ctx: Any,
        alpha: Tensor,
        x: Tensor,
        weight: Tensor,
        self_weight: Tensor | None,
        seed: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor | None,
        back_row: Tensor | None,
        back_perm: Tensor | None,
        dropout: float,
    ) -> Tensor:
        sums = _aggregate(rowptr, col, alpha, x, self_weight, seed, dropout)
        out = empty(sums, sums.size(0), weight.size(0), weight.size(1))
        for h in range(weight.size(0)):
            torch.mm(sums[:, h], weight[h].t(), out=out[:, h])
        ctx.dropout = dropout
        kept = sums if sums.numel() * sums.element_size() < LARGE_BYTES else None
        graph = (rowptr, col, back_rowptr, back_row, back_perm)
        ctx.save_for_backward(kept, weight, *graph, alpha, x, self_weight, seed)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        kept, weight, *graph, alpha, x, self_weight, seed = ctx.saved_tensors
        needs = ctx.needs_input_grad
        sums = kept
        if sums is None:
            sums = _aggregate(graph[0], graph[1], alpha, x, self_weight, seed, ctx.dropout)
        d_weight = torch.empty_like(weight)
        d_sums = empty(sums, *sums.shape) if kept is not None else sums
        for h in range(weight.size(0)):
            torch.mm(grad[:, h].t(), sums[:, h], out=d_weight[h])
            torch.mm(grad[:, h], weight[h], out=d_sums[:, h])
        call: Any = _aggregate_backward
        d_alpha, d_x, d_self = call(*graph, alpha, x, self_weight, seed, ctx.dropout, d_sums)
        return (
            d_alpha if needs[0] else None,
            d_x if needs[1] else None,
            d_weight if needs[2] else None,
            d_self if needs[3] else None,
            *(None,) * 7,
        )


def aggregate(
    adj: Adjacency,
    alpha: Tensor,
    x: Tensor,
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    inputs = _contiguous(alpha, x, self_weight)
    return _Aggregate.apply(*inputs, dropping.in_use(dropout, seed), *_orders(adj, x), dropout)


def aggregate_and_project(
    adj: Adjacency,
    alpha: Tensor,
    x: Tensor,
    weight: Tensor,
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    inputs = _contiguous(alpha, x, weight, self_weight)
    return _AggregateProject.apply(*inputs, dropping.in_use(dropout, seed), *_orders(adj, x), dropout)


def _contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def _orders(adj: Adjacency, x: Tensor) -> tuple[Tensor | None, ...]:
    """The entries by target, and by source where x will want its gradient."""
    if not (torch.is_grad_enabled() and x.requires_grad):
        return adj.rowptr, adj.col, None, None, None
    return adj.rowptr, adj.col, adj.transposed.rowptr, adj.transposed.row, adj.transposed.perm
