"""May a backward pass write over the gradient that it was handed?

On a large graph a hidden layer's gradient is half a gigabyte. When nobody else can see it, that of the
activation goes into the same memory. "Nobody else" is read off the reference counts: any doubt means no.
"""

import sys
from functools import cache

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import workspace

LARGE_BYTES = 1 << 26


def may_overwrite(grad: Tensor) -> bool:
    """To be called from a backward that is `once_differentiable`, on its argument."""
    if grad.numel() * grad.element_size() < LARGE_BYTES or torch.compiler.is_compiling():
        return False
    found, alone = _references(grad, sys.getrefcount(grad)), _references_when_alone()
    memory = workspace.is_only_user(grad) if workspace.holds(grad) else found[1] == alone[1]
    return grad._base is None and memory and (found[0], found[2]) == (alone[0], alone[2])


def _references(grad: Tensor, from_python: int) -> tuple[int, int, int]:
    """How many hold this tensor in C++, its memory, and its Python object."""
    use_count = getattr(grad, "_use_count", None)
    storage_use_count = getattr(torch._C, "_storage_Use_Count", None)
    if use_count is None or storage_use_count is None:
        return (-1, -1, -1)
    return use_count(), storage_use_count(grad.untyped_storage()._cdata), from_python


@cache
def _references_when_alone() -> tuple[int, int, int]:
    """The counts of a gradient that only the autograd engine holds, as this version of torch shows them."""
    x = torch.ones(2, 2, requires_grad=True)
    with torch.enable_grad():
        (_Probe.apply(x) @ torch.ones(2, 2)).sum().backward()
    alone = _Probe.seen
    return alone if min(alone) > 0 else (0, 0, 0)


class _Probe(torch.autograd.Function):
    seen = (0, 0, 0)

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> Tensor:
        _Probe._look(grad)
        return grad

    @staticmethod
    def _look(grad: Tensor) -> None:
        """One call deep, as `may_overwrite` is."""
        _Probe.seen = _references(grad, sys.getrefcount(grad))
