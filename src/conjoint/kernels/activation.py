"""Activation and dropout in one pass (csrc/activation.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import dropout as dropping
from .library import run
from .ownership import may_overwrite
from .registry import is_fake, operation
from .workspace import empty

CODES = {"none": 0, "relu": 1, "elu": 2}


@operation
def _activate_and_drop(x: Tensor, activation: int, seed: Tensor | None, dropout: float) -> Tensor:
    out = empty(x, *x.shape)
    if not is_fake(out):
        run("activate_and_drop", x.dtype, x, x.numel(), activation, *_mask(seed, dropout), out)
    return out


@operation
def _activate_and_drop_backward(
    grad: Tensor, result: Tensor, activation: int, seed: Tensor | None, dropout: float
) -> Tensor:
    out = empty(result, *result.shape)
    if not is_fake(out):
        _fill_backward(grad, result, activation, seed, dropout, out=out)
    return out


def _fill_backward(
    grad: Tensor, result: Tensor, activation: int, seed: Tensor | None, dropout: float, out: Tensor
) -> None:
    shape = (result.numel(), activation)
    run("activate_and_drop_backward", out.dtype, grad, result, *shape, *_mask(seed, dropout), out)


def _mask(seed: Tensor | None, dropout: float) -> tuple[Tensor | None, int, float]:
    return seed, dropping.threshold(dropout), 1.0 if seed is None else dropping.scale(dropout)


class _ActivateAndDrop(torch.autograd.Function):
    """The gradient is a function of the result and the mask: the input is not kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, activation: int, seed: Tensor | None, dropout: float) -> Tensor:
        ctx.activation, ctx.dropout = activation, dropout
        result = _activate_and_drop(x, activation, seed, dropout)
        ctx.save_for_backward(result, seed)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        result, seed = ctx.saved_tensors
        if grad.is_contiguous() and may_overwrite(grad):
            _fill_backward(grad, result, ctx.activation, seed, ctx.dropout, out=grad)
            return grad, None, None, None
        d_x = _activate_and_drop_backward(grad.contiguous(), result, ctx.activation, seed, ctx.dropout)
        return d_x, None, None, None


def activate_and_drop(x: Tensor, activation: str, dropout: float, seed: Tensor | None) -> Tensor:
    return _ActivateAndDrop.apply(x.contiguous(), CODES[activation], dropping.in_use(dropout, seed), dropout)
