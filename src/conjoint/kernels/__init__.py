"""Compiled CPU kernels for conjoint attention, and the switch between them and plain torch."""

from .library import active, disabled, status
from .memory import kept_memory

__all__ = ["active", "disabled", "kept_memory", "status"]
