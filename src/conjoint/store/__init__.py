"""A graph on disk: a folder of plain memory-mapped arrays that may be larger than memory."""

from .build import ingest
from .graph import StoredGraph, is_stored, open_graph, stored_from, to_data

__all__ = ["StoredGraph", "ingest", "is_stored", "open_graph", "stored_from", "to_data"]
