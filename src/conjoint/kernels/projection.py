"""Sparse features times a weight, and rows times the attention vectors (csrc/projection.h)."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import dropout as dropping
from .library import address, partial_sums, run
from .registry import is_fake, operation
from .workspace import LARGE_BYTES, empty


class _Rows(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rowptr", "col", "value")),
        *((name, ctypes.c_int64) for name in ("rows", "inputs", "outputs")),
        ("seed", ctypes.c_void_p),
        ("threshold", ctypes.c_int64),
        ("scale", ctypes.c_double),
    )


def _rows(
    rowptr: Tensor, col: Tensor, value: Tensor, weight_shape: torch.Size, seed: Tensor | None, dropout: float
) -> Any:
    factor = 1.0 if seed is None else dropping.scale(dropout)
    return ctypes.byref(
        _Rows(
            *map(address, (rowptr, col, value)),
            *(rowptr.numel() - 1, weight_shape[1], weight_shape[0]),
            *(address(seed), dropping.threshold(dropout), factor),
        )
    )


@operation
def _sparse_project(
    rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, seed: Tensor | None, dropout: float
) -> Tensor:
    out = weight.new_empty(rowptr.numel() - 1, weight.size(0))
    if not is_fake(out):
        inputs = _rows(rowptr, col, value, weight.shape, seed, dropout)
        run("sparse_project", out.dtype, inputs, weight, weight.new_empty(weight.numel()), out)
    return out


@operation
def _sparse_project_backward(
    rowptr: Tensor,
    col: Tensor,
    value: Tensor,
    weight: Tensor,
    seed: Tensor | None,
    dropout: float,
    grad: Tensor,
) -> Tensor:
    d_weight = torch.empty_like(weight)
    if not is_fake(d_weight):
        inputs = _rows(rowptr, col, value, weight.shape, seed, dropout)
        run("sparse_project_backward", grad.dtype, inputs, grad, weight.new_empty(weight.numel()), d_weight)
    return d_weight


@operation
def _head_dots(x: Tensor, first: Tensor, second: Tensor | None, second_rows: int) -> tuple[Tensor, Tensor]:
    """Products with both vectors; with the second only for the first rows, as many as are said."""
    out = x.new_empty(x.size(0), x.size(1))
    other = x.new_empty(0) if second is None else x.new_empty(second_rows, x.size(1))
    if not is_fake(out):
        rows = 0 if second is None else second_rows
        run("head_dots", x.dtype, x, *x.shape, first, second, rows, out, other)
    return out, other


@operation
def _head_dots_backward(
    x: Tensor,
    first: Tensor,
    second: Tensor | None,
    grad_first: Tensor | None,
    grad_second: Tensor | None,
    with_x: bool,
) -> tuple[Tensor, Tensor]:
    """(d x or empty, d of both vectors [2, heads, channels])."""
    d_x = empty(x, *x.shape) if with_x else x.new_empty(0)
    d_vectors = x.new_empty(2, x.size(1), x.size(2))
    if not is_fake(d_vectors):
        vectors, rows = (first, second), 0 if second is None else x.size(0)
        _fill_head_dots_backward(
            x, vectors, rows, (grad_first, grad_second), 0, d_x if with_x else None, d_vectors
        )
    return d_x, d_vectors


def add_head_dots_backward(
    x: Tensor, first: Tensor, second: Tensor, grad_first: Tensor, grad_second: Tensor, *, into: Tensor
) -> Tensor:
    """Add d x to `into`, which only the caller may hold; return d of both vectors [2, heads, channels]."""
    d_vectors = x.new_empty(2, x.size(1), x.size(2))
    grads = (grad_first, grad_second)
    _fill_head_dots_backward(x, (first, second), grad_second.size(0), grads, 1, into, d_vectors)
    return d_vectors


def _fill_head_dots_backward(
    x: Tensor,
    vectors: tuple[Tensor | None, ...],
    second_rows: int,
    grads: tuple[Tensor | None, ...],
    add: int,
    d_x: Tensor | None,
    d_vectors: Tensor,
) -> None:
    partial = partial_sums(x, d_vectors.numel())
    results = (d_x, partial, d_vectors)
    run("head_dots_backward", x.dtype, x, *x.shape, *vectors, second_rows, *grads, add, *results)


class _SparseProject(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        rowptr: Tensor,
        col: Tensor,
        value: Tensor,
        seed: Tensor | None,
        dropout: float,
    ) -> Tensor:
        ctx.dropout = dropout
        ctx.save_for_backward(rowptr, col, value, weight, seed)
        return _sparse_project(rowptr, col, value, weight, seed, dropout)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        rowptr, col, value, weight, seed = ctx.saved_tensors
        grad = grad.contiguous()
        d_weight = _sparse_project_backward(rowptr, col, value, weight, seed, ctx.dropout, grad)
        return d_weight, *(None,) * 5


class _HeadDots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, first: Tensor, second: Tensor | None) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, first, second)
        out, other = _head_dots(x, first, second, x.size(0))
        return out if second is None else (out, other)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_first: Tensor | None, grad_second: Tensor | None = None) -> Any:
        x, first, second = ctx.saved_tensors
        if grad_first is None and grad_second is None:
            return None, None, None
        needs = ctx.needs_input_grad
        one, two = (None if grad is None else grad.contiguous() for grad in (grad_first, grad_second))
        d_x, d_vectors = _head_dots_backward(x, first, second, one, two, needs[0])
        found = (d_x if needs[0] else None, d_vectors[0] if needs[1] else None)
        return *found, d_vectors[1] if needs[2] else None


class _Project(torch.autograd.Function):
    """x W^T with large results in the workspace."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.mm(x, weight.t(), out=empty(x, x.size(0), weight.size(0)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        d_weight = grad.t() @ x if ctx.needs_input_grad[1] else None
        d_x = torch.mm(grad, weight, out=empty(x, *x.shape)) if ctx.needs_input_grad[0] else None
        return d_x, d_weight


def project(x: Tensor, weight: Tensor) -> Tensor:
    large = max(x.size(1), weight.size(0)) * x.size(0) * x.element_size() >= LARGE_BYTES
    return _Project.apply(x, weight) if large else x @ weight.t()


def sparse_project(x: Tensor, weight: Tensor, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    parts = (x.crow_indices(), x.col_indices(), x.values())
    return _SparseProject.apply(weight.contiguous(), *parts, dropping.in_use(dropout, seed), dropout)


def head_dot(x: Tensor, att: Tensor) -> Tensor:
    return _HeadDots.apply(x.contiguous(), att.contiguous(), None)


def head_dots(x: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, Tensor]:
    return _HeadDots.apply(x.contiguous(), att_src.contiguous(), att_dst.contiguous())
