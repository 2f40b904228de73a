"""Kernels as torch operations.

In eager mode a kernel is called directly: going through torch's dispatcher costs 20 to 60 microseconds a call
in Python, which a small graph would notice. Under torch.compile the same function is an operation
`torch.ops.conjoint.<name>` with known shapes, so that the compiler sees an ordinary function.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARY = torch.library.Library("conjoint", "DEF")


def operation(kernel: Callable[P, R]) -> Callable[P, R]:
    """Register a function that allocates its results and fills them, unless they are fake (`is_fake`)."""
    name = kernel.__name__.strip("_")
    _LIBRARY.define(name + torch.library.infer_schema(kernel, mutates_args=()))
    _LIBRARY.impl(name, kernel, "CPU")
    torch.library.register_fake(f"conjoint::{name}", kernel, lib=_LIBRARY)
    registered = getattr(torch.ops.conjoint, name).default

    @wraps(kernel)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            return registered(*args, **kwargs)
        return kernel(*args, **kwargs)

    return call


def is_fake(result: Tensor) -> bool:
    """Whether torch.compile is only asking for shapes."""
    return isinstance(result, FakeTensor)
