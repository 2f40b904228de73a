"""Own gradients are of first order; a second one is an error, never a wrong number."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

_MESSAGE = (
    "conjoint: this operation has a first derivative alone (once_differentiable); for a second one use "
    "torch.func (jacrev, jacfwd, hessian), which runs it in plain torch"
)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """As torch's, which however gives constants, so that all that comes from the saved tensors is silently
    missing from a second derivative: it raises only where the incoming gradient is asked for one. Here the
    gradient hangs on everything that it was made of, and whoever follows it there is told."""

    @wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        if not torch.is_grad_enabled():  # nearly always
            return backward(ctx, *grads)
        with torch.no_grad():
            found = backward(ctx, *grads)
        if torch.compiler.is_compiling():
            return found
        each = found if isinstance(found, tuple) else (found,)
        links = [one for one in (*grads, *ctx.saved_tensors) if one is not None and one.requires_grad]
        last = tuple(_Last.apply(one, *links) if isinstance(one, Tensor) else None for one in each)
        return last if isinstance(found, tuple) else last[0]

    return wrapper


class _Last(Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, *links: Tensor) -> Tensor:
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise RuntimeError(_MESSAGE)
