"""Tables of any size into a graph folder."""

from .build import ingest

__all__ = ["ingest"]
