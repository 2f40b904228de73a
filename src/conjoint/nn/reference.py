"""Definitions in plain torch that the layers read directly."""

from .ops import head_project, shares

__all__ = ["head_project", "shares"]
