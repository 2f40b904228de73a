"""Activation and dropout in one pass (csrc/activation.h)."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from ...kernels.call import run
from ...kernels.library import takes
from ...kernels.memory import empty, may_overwrite
from ..randomness import Mask, keep_mask, mask_of
from .entries import csr

# Each with its code in csrc/activation.h.
ACTIVATIONS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "none": (0, lambda x: x),
    "relu": (1, F.relu),
    "elu": (2, F.elu),
}


def activate_and_drop(x: Tensor, activation: str, dropout: float, seed: Tensor | None) -> Tensor:
    """The step between two layers: ELU or ReLU (or "none"), then dropout."""
    (code, function), mask = ACTIVATIONS[activation], mask_of(dropout, seed)
    if takes(x):
        return _ActivateAndDrop.apply(code, mask, x.contiguous())
    x = function(x)
    if dropout <= 0.0 or seed is None:
        return x
    keep = keep_mask(seed, x.numel(), dropout).view_as(x)
    return x * (keep.to(x.dtype) * mask[2])


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """Dropout with a mask that is a function of the seed and the place. Sparse CSR: on the stored values,
    which is dense dropout exactly, because a dropped zero is a zero."""
    if x.layout == torch.sparse_csr:
        return csr(x.crow_indices(), x.col_indices(), drop(x.values(), dropout, seed), x.shape)
    return activate_and_drop(x, "none", dropout, seed)


class _ActivateAndDrop(Function):
    """The gradient is a function of the result and the mask: the input is not kept."""

    @staticmethod
    def forward(ctx: Any, activation: int, mask: Mask, x: Tensor) -> Tensor:
        ctx.step = (x.numel(), activation, *mask)
        result = empty(x, *x.shape)
        run("activate_and_drop", x.dtype, (x, *ctx.step), (result,))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        (result,) = ctx.saved_tensors
        d_x = grad if grad.is_contiguous() and may_overwrite(grad) else empty(result, *result.shape)
        run("activate_and_drop_backward", result.dtype, (grad.contiguous(), result, *ctx.step), (d_x,))
        return None, None, d_x
