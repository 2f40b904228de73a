"""Memory of large tensors: kept from step to step, and written over where no other tensor shares it.

A fresh half-gigabyte costs page faults, a fifth of a second or more each time, and a training step on a
large graph makes half a dozen. Inside `kept_memory()` the kernels take large results from buffers that no
tensor uses any more: nothing but the pool refers to them, so what a caller keeps is safe. Results of a few
megabytes are taken from such buffers always: the C library gives back to the system what a layer frees, and
fetching it again takes as long as the layer's own work.
"""

import math
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor
from torch.autograd.function import Function

from .gradient import once_differentiable

MIDDLE_BYTES = 1 << 17  # smaller tensors come and go cheaply
LARGE_BYTES = 16 << 20  # from here on a buffer is kept inside `kept_memory()` alone
RECYCLED_BYTES = 64 << 20  # of the buffers below that size, in one thread
HUGE_BYTES = 64 << 20  # from here on memory is worth a second computation, or a look at what else holds it
SLACK = 2.2  # a buffer may be this many times larger than what is put into it
# Without these counts, which torch does not promise, nothing is kept and nothing is written over.
_COUNTS = hasattr(torch._C, "_storage_Use_Count") and hasattr(Tensor, "_use_count")


class _Pool:
    def __init__(self) -> None:
        self.buffers: dict[int, torch.UntypedStorage] = {}
        self.alone = _uses(torch.UntypedStorage(1))

    def take(self, nbytes: int) -> torch.UntypedStorage:
        """The smallest unused buffer that fits. If none does, unused smaller ones make room for a new one."""
        unused = [buffer for buffer in self.buffers.values() if _uses(buffer) == self.alone]
        fitting = [buffer for buffer in unused if nbytes <= buffer.nbytes() <= SLACK * nbytes]
        if fitting:
            return min(fitting, key=lambda buffer: buffer.nbytes())
        for place in [buffer.data_ptr() for buffer in unused if buffer.nbytes() < nbytes]:
            del self.buffers[place]
        unused = []  # the last to refer to them
        made = torch.UntypedStorage(nbytes)
        self.buffers[made.data_ptr()] = made
        return made


class _Recycled(threading.local):
    """Buffers below LARGE_BYTES by their exact size. Every thread has its own: two must not take the same."""

    def __init__(self) -> None:
        self.buffers: dict[int, list[torch.UntypedStorage]] = defaultdict(list)
        self.total, self.alone = 0, _uses(torch.UntypedStorage(1))

    def take(self, nbytes: int) -> torch.UntypedStorage:
        """An unused buffer or a new one. If there are too many, all are left to who still uses them."""
        for buffer in self.buffers[nbytes]:
            if _uses(buffer) == self.alone:
                return buffer
        if self.total + nbytes > RECYCLED_BYTES:
            self.buffers.clear()
            self.total = 0
        made = torch.UntypedStorage(nbytes)
        self.buffers[nbytes].append(made)
        self.total += nbytes
        return made


_pool: _Pool | None = None


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep large buffers until the end of the block. Nested blocks share the outermost."""
    global _pool
    if _pool is not None or not _COUNTS:
        yield
        return
    _pool = _Pool()
    try:
        yield
    finally:
        _pool = None


def empty(like: Tensor, *shape: int) -> Tensor:
    """An uninitialised tensor on the CPU with the type of `like`, in a kept buffer unless it is small."""
    nbytes = math.prod(shape) * like.element_size()
    pool = _pool if nbytes >= LARGE_BYTES else _recycled if nbytes >= MIDDLE_BYTES else None
    if pool is None or torch.compiler.is_compiling():
        return like.new_empty(shape)
    # Not a view: a tensor of its own on the buffer's memory.
    return torch.empty(0, dtype=like.dtype).set_(pool.take(nbytes), 0, shape, ())


def empty_like(x: Tensor) -> Tensor:
    """Of its shape, type and device; on the CPU in a kept buffer unless it is small."""
    return empty(x, *x.shape) if x.is_cpu else torch.empty_like(x)


def contiguous(grad: Tensor) -> Tensor:
    """The gradient itself; if it is one number spread over a shape (that of a sum), a copy in a buffer."""
    return grad if grad.is_contiguous() else empty(grad, *grad.shape).copy_(grad)


def pooled(tensor: Tensor) -> bool:
    """Whether the tensor lies in a buffer of the pool."""
    return _pool is not None and tensor.untyped_storage().data_ptr() in _pool.buffers


def _uses(buffer: torch.UntypedStorage) -> int:
    return torch._C._storage_Use_Count(buffer._cdata)


_recycled = _Recycled() if _COUNTS else None


def may_overwrite(grad: Tensor) -> bool:
    """Whether a backward pass may write over the gradient that it was handed.

    On a large graph a hidden layer's gradient is half a gigabyte. When nothing else holds it, as the
    reference counts show, that of the activation goes into the same memory.
    To be called from a backward that is `once_differentiable`, on its argument.
    """
    if grad.numel() * grad.element_size() < HUGE_BYTES or torch.compiler.is_compiling() or not _COUNTS:
        return False
    of_tensor, of_memory, of_object = _references_when_alone()
    if _pool is not None and pooled(grad):
        of_memory = _pool.alone + 1  # the pool's own and the gradient's
    found = _references(grad, sys.getrefcount(grad))
    return grad._base is None and found == (of_tensor, of_memory, of_object)


def _references(grad: Tensor, from_python: int) -> tuple[int, int, int]:
    """How many hold this tensor in C++, its memory, and its Python object."""
    return grad._use_count(), _uses(grad.untyped_storage()), from_python  # type: ignore[attr-defined]


@cache
def _references_when_alone() -> tuple[int, int, int]:
    """The counts of a gradient that only the autograd engine holds, as this version of torch shows them."""
    x = torch.ones(2, 2, requires_grad=True)
    with torch.enable_grad():
        (_Probe.apply(x) @ torch.ones(2, 2)).sum().backward()
    return _Probe.seen


class _Probe(Function):
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
