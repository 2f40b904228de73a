"""Softmax over a node's entries and the attention of Eq. 4, 7 and 8 (csrc/attention.h)."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from .library import address, partial_sums, run
from .registry import is_fake, operation
from .structure import sum_entries
from .workspace import empty


class _Inputs(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rowptr", "col")),
        *((name, ctypes.c_int64) for name in ("rows", "heads", "structure_heads")),
        *((name, ctypes.c_void_p) for name in ("a_src", "a_dst", "edge_logit", "structure", "mix")),
        ("negative_slope", ctypes.c_double),
    )


class _Backward(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("feature", "grad", "grad_feature", "d_logit", "d_dst", "d_structure")
    )


@operation
def _softmax(rowptr: Tensor, logit: Tensor) -> Tensor:
    out = torch.empty_like(logit)
    if not is_fake(out):
        run("softmax", out.dtype, rowptr, rowptr.numel() - 1, logit.shape[1:].numel(), logit, out)
    return out


@operation
def _softmax_backward(rowptr: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
    out = torch.empty_like(weight)
    if not is_fake(out):
        run(
            "softmax_backward",
            out.dtype,
            rowptr,
            rowptr.numel() - 1,
            weight.shape[1:].numel(),
            weight,
            grad,
            out,
        )
    return out


@operation
def _attention(
    rowptr: Tensor,
    col: Tensor,
    a_src: Tensor,
    a_dst: Tensor | None,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix: Tensor | None,
    negative_slope: float,
) -> tuple[Tensor, Tensor]:
    """(feature, alpha); alpha is empty where it would equal the first."""
    feature = empty(a_src, col.numel(), a_src.size(1))
    alpha = a_src.new_empty(0) if mix is None else empty(a_src, *feature.shape)
    if not is_fake(feature):
        inputs = _inputs(rowptr, col, a_src, a_dst, edge_logit, structure, mix, negative_slope)
        run("attention", feature.dtype, inputs, feature, alpha)
    return feature, alpha


@operation
def _attention_backward(
    rowptr: Tensor,
    col: Tensor,
    a_src: Tensor,
    a_dst: Tensor | None,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix: Tensor | None,
    negative_slope: float,
    feature: Tensor,
    grad: Tensor,
    grad_feature: Tensor | None,
    with_structure: bool,
    with_mix: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(d logit, d a_dst, d structure, d mix); empty where absent or not asked for; d mix is [2, heads]."""
    d_logit = empty(feature, *feature.shape)
    d_dst = a_src.new_empty(0 if a_dst is None else a_dst.shape)
    d_structure = a_src.new_empty(0 if structure is None or not with_structure else structure.shape)
    d_mix = a_src.new_empty((2, mix.size(0)) if with_mix and mix is not None else 0)
    if not is_fake(d_logit):
        inputs = _inputs(rowptr, col, a_src, a_dst, edge_logit, structure, mix, negative_slope)
        partial = partial_sums(a_src, 2 * a_src.size(1)) if with_mix else None
        wanted = [result if result.numel() else None for result in (d_dst, d_structure)]
        outputs = _Backward(*map(address, (feature, grad, grad_feature, d_logit, *wanted)))
        with_sums = d_mix if with_mix else None
        run("attention_backward", feature.dtype, inputs, ctypes.byref(outputs), partial, with_sums)
    return d_logit, d_dst, d_structure, d_mix


def _inputs(
    rowptr: Tensor,
    col: Tensor,
    a_src: Tensor,
    a_dst: Tensor | None,
    edge_logit: Tensor | None,
    structure: Tensor | None,
    mix: Tensor | None,
    negative_slope: float,
) -> Any:
    wide = 1 if structure is None else structure.shape[1:].numel()
    shapes = (rowptr.numel() - 1, a_src.size(1), wide)
    places = (address(a_src), address(a_dst), address(edge_logit), address(structure), address(mix))
    return ctypes.byref(_Inputs(address(rowptr), address(col), *shapes, *places, negative_slope))


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rowptr: Tensor, logit: Tensor) -> Tensor:
        weight = _softmax(rowptr, logit.contiguous())
        ctx.save_for_backward(rowptr, weight)
        return weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        rowptr, weight = ctx.saved_tensors
        return None, _softmax_backward(rowptr, weight, grad.contiguous())


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        a_src: Tensor,
        a_dst: Tensor | None,
        edge_logit: Tensor | None,
        structure: Tensor | None,
        mix: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        back_rowptr: Tensor | None,
        back_perm: Tensor | None,
        negative_slope: float,
    ) -> Any:
        ctx.set_materialize_grads(False)
        ctx.negative_slope = negative_slope
        feature, alpha = _attention(rowptr, col, a_src, a_dst, edge_logit, structure, mix, negative_slope)
        inputs = (a_src, a_dst, edge_logit, structure, mix)
        ctx.save_for_backward(*inputs, feature, rowptr, col, back_rowptr, back_perm)
        return feature if mix is None else (alpha, feature)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, grad_feature: Tensor | None = None) -> Any:
        *inputs, feature, rowptr, col, back_rowptr, back_perm = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if grad is None and grad_feature is None:
            return (None,) * 10
        if grad is None:
            grad = torch.zeros_like(feature)
        call: Any = _attention_backward  # too many arguments in a row for the type checker to count
        d_logit, d_dst, d_structure, d_mix = call(
            *(rowptr, col, *inputs, ctx.negative_slope, feature, grad.contiguous()),
            *(None if grad_feature is None else grad_feature.contiguous(), needs[3], needs[4]),
        )
        d_src = sum_entries(back_rowptr, back_perm, d_logit) if needs[0] else None
        return (
            d_src,
            d_dst if needs[1] else None,
            d_logit if needs[2] else None,
            d_structure if needs[3] else None,
            d_mix.t() if needs[4] else None,
            *(None,) * 5,
        )


def edge_softmax(adj: Adjacency, logit: Tensor) -> Tensor:
    return _Softmax.apply(adj.rowptr, logit)


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
    if explicit:
        mix = None
    elif mix is None:
        structure = None
    backward = torch.is_grad_enabled() and a_src.requires_grad
    back = (adj.transposed.rowptr, adj.transposed.perm) if backward else (None, None)
    inputs = [
        None if part is None else part.contiguous() for part in (a_src, a_dst, edge_logit, structure, mix)
    ]
    result = _Attention.apply(*inputs, adj.rowptr, adj.col, *back, negative_slope)
    return (result, result) if mix is None else result
