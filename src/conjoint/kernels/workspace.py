"""Large tensors in memory that is kept from step to step.

A fresh half-gigabyte costs page faults, a fifth of a second or more each time, and a training step on a
large graph makes half a dozen. Inside `kept_memory()` the kernels take large results from buffers that no
tensor uses any more: nothing but the pool refers to them, so what a caller keeps is safe.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

# Smaller tensors come and go cheaply.
LARGE_BYTES = 16 << 20
# A buffer may be so many times larger than what is put into it.
SLACK = 2.2


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


_pool: _Pool | None = None


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep large buffers until the end of the block. Nested blocks share the outermost."""
    global _pool
    if _pool is not None or not hasattr(torch._C, "_storage_Use_Count"):
        yield
        return
    _pool = _Pool()
    try:
        yield
    finally:
        _pool = None


def empty(like: Tensor, *shape: int) -> Tensor:
    """An uninitialised tensor on the CPU with the type of `like`, from the workspace if it is large."""
    nbytes = math.prod(shape) * like.element_size()
    if _pool is None or torch.compiler.is_compiling() or nbytes < LARGE_BYTES:
        return like.new_empty(shape)
    # Not a view: a tensor of its own on the buffer's memory.
    return torch.empty(0, dtype=like.dtype).set_(_pool.take(nbytes), 0, shape, _strides(shape))


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[place + 1 :]) for place in range(len(shape))]


def holds(tensor: Tensor) -> bool:
    """Whether the tensor lies in a buffer of the workspace."""
    return _pool is not None and tensor.untyped_storage().data_ptr() in _pool.buffers


def is_only_user(tensor: Tensor) -> bool:
    """Whether the tensor lies in a buffer that no other tensor uses."""
    return _pool is not None and holds(tensor) and _uses(tensor.untyped_storage()) == _pool.alone + 1


def _uses(buffer: torch.UntypedStorage) -> int:
    return torch._C._storage_Use_Count(buffer._cdata)
