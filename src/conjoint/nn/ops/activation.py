"""Activation and dropout in one pass (csrc/activation.h).

Dropout masks are a function of (seed, place) alone: nothing is stored, forward and backward make the same
mask, and the number of threads does not matter. The compiled kernels compute the same function.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function

from ...graph.sparse import csr_tensor, is_sparse
from ...kernels.gradient import once_differentiable
from ...kernels.library import run, takes
from ...kernels.memory import empty, may_overwrite

_WORD = 0xFFFFFFFF

Mask = tuple[Tensor | None, int, float]  # seed, threshold, scale
# Each with its code in csrc/activation.h.
ACTIVATIONS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "none": (0, lambda x: x),
    "relu": (1, F.relu),
    "elu": (2, F.elu),
}


def draw_seed(device: torch.device | None = None) -> Tensor:
    """A fresh seed from torch's generator, so that `torch.manual_seed` governs it as it does F.dropout."""
    return torch.randint(0, 2**62, (1,), dtype=torch.long, device=device)


def mask_of(dropout: float, seed: Tensor | None) -> Mask:
    """A place is kept when its 32-bit hash is at least the threshold, and multiplied by the scale."""
    if seed is None or dropout <= 0.0:
        return None, 0, 1.0
    return seed, min(round(dropout * 2.0**32), 2**32 - 1), 1.0 / (1.0 - dropout) if dropout < 1.0 else 0.0


def keep_mask(seed: Tensor, count: int, dropout: float) -> Tensor:
    """Which of `count` places are kept: hash(seed, place) >= threshold. [count] bool

    The hash is two rounds of a 32-bit multiply-xorshift over the place, started from the two halves of
    the seed. int64 arithmetic keeps every product below 2^63.
    """
    place = torch.arange(count, dtype=torch.long, device=seed.device)
    low, high = seed & _WORD, (seed >> 32) & _WORD
    word = _mix((place & _WORD) ^ low)
    word = _mix(word ^ (place >> 32) ^ high)
    return word >= mask_of(dropout, seed)[1]


def _mix(word: Tensor) -> Tensor:
    """The 32-bit finaliser "lowbias32" (C. Wellons, public domain): multiply and xorshift."""
    word = word ^ (word >> 16)
    word = (word * 0x7FEB352D) & _WORD
    word = word ^ (word >> 15)
    # Times 0x846CA68B, split so that no product leaves int64: the top bit only moves the lowest one.
    word = (word * 0x046CA68B + ((word & 1) << 31)) & _WORD
    return word ^ (word >> 16)


def activate_and_drop(x: Tensor, activation: str, dropout: float, seed: Tensor | None) -> Tensor:
    """The step between two layers: ELU or ReLU (or "none"), then dropout."""
    (code, function), mask = ACTIVATIONS[activation], mask_of(dropout, seed)
    if takes(x):
        return _ActivateAndDrop.apply(code, mask, x.contiguous())
    x = function(x)
    if dropout <= 0.0 or seed is None:
        return x
    return x * (keep_mask(seed, x.numel(), dropout).view_as(x).to(x.dtype) * mask[2])


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """Dropout with a mask that is a function of the seed and the place. Sparse CSR: on the stored values,
    which is dense dropout exactly, because a dropped zero is a zero."""
    if is_sparse(x):
        values = drop(x.values(), dropout, seed)
        return csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, checked=False)
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
