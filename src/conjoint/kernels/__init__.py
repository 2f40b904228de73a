"""Compiled CPU kernels for conjoint attention, and the switch between them and plain torch."""

from .library import active, disabled, status

__all__ = ["active", "disabled", "status"]
