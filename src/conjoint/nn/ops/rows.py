"""Sums and scalings of rows of hidden units: torch's own, in memory that is kept from step to step.

On a large graph a fresh tensor costs more than what is put into it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from ...kernels.gradient import once_differentiable
from ...kernels.library import takes
from ...kernels.memory import empty_like
from ...recording import compiling


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b of one shape."""
    return _Add.apply(a, b) if takes(a, b) and a.shape == b.shape and not compiling() else a + b


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x * weight + bias. [rows, channels], [channels], [channels]"""
    if takes(x, weight, bias) and x.dim() == 2 and not compiling():
        return _Affine.apply(x, weight, bias)
    return torch.addcmul(bias, x, weight)


class _Add(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.add(a, b, out=empty_like(a))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad


class _Affine(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addcmul(bias, x, weight, out=empty_like(x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        product = torch.mul(grad, x, out=empty_like(x))
        d_weight = product.sum(dim=0)
        return torch.mul(grad, weight, out=product), d_weight, grad.sum(dim=0)
