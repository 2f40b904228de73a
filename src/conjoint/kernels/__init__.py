"""Compiled CPU kernels for conjoint attention, and the switch between them and plain torch."""

from contextlib import AbstractContextManager

from .loading import active, disabled, status

__all__ = ["active", "disabled", "kept_memory", "status"]


def kept_memory() -> AbstractContextManager[None]:
    """Inside, large results are written into buffers that no tensor uses any more, see memory.py."""
    from . import memory  # needs torch, which `conjoint doctor` does without

    return memory.kept_memory()
