"""Graphs in and out: the paper's benchmarks, the user's own files, objects of other libraries."""

from ..benchmark_files import datasets_table
from ..graph.graph import Graph, as_graph, make_split
from ..graph.sparse import row_normalise
from ..graph.splits import Split
from .benchmarks import load_graph
from .convert import from_any, load, to_pyg
from .ingestion import ingest
from .own import read_graph
from .write import write_graph, write_table

__all__ = [
    "Graph",
    "Split",
    "as_graph",
    "datasets_table",
    "from_any",
    "ingest",
    "load",
    "load_graph",
    "make_split",
    "read_graph",
    "row_normalise",
    "to_pyg",
    "write_graph",
    "write_table",
]
