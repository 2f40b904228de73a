"""When torch only records a computation, transforms it, or knows no more of a tensor than its shape."""

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode

PLAIN = (Tensor, nn.Parameter)
_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # from torch 2.7 on


def compiling() -> bool:
    """Inside torch.compile, where the kernels are one operation of torch; torch.export wants none."""
    return torch.compiler.is_compiling() and not _exporting()


def recording() -> bool:
    """Whether tensors stand for others that come later: compiled, exported, traced, in a dispatch mode."""
    if torch.compiler.is_compiling():
        return True
    return torch.jit.is_tracing() or _get_current_dispatch_mode() is not None


def transforming() -> bool:
    """Inside vmap, grad or jvp of torch.func, or of forward-mode differentiation."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def readable(*tensors: Tensor | None) -> bool:
    """Whether the numbers in these tensors can be looked at."""
    if recording():
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return not any(
        one is not None and (one.is_meta or isinstance(one, FakeTensor) or wrapped(one)) for one in tensors
    )


def direct(*tensors: Tensor | None) -> bool:
    """Whether these are ordinary tensors with memory, in an ordinary call: own gradients are for those."""
    if recording() or transforming():
        return False
    return all(one is None or (type(one) in PLAIN and not one.is_meta) for one in tensors)
