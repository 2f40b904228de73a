"""Graphs in: the paper's benchmarks, the user's own files, honest splits."""

from conjoint.data.benchmarks import load
from conjoint.data.catalogue import datasets_table
from conjoint.data.convert import from_any
from conjoint.data.fingerprint import fingerprint
from conjoint.data.own import read_graph
from conjoint.data.splits import Split, make_split
from conjoint.data.tables import write_table
from conjoint.data.write import write_graph
from conjoint.graph.sparse import row_normalise

__all__ = [
    "Split",
    "datasets_table",
    "fingerprint",
    "from_any",
    "load",
    "make_split",
    "read_graph",
    "row_normalise",
    "write_graph",
    "write_table",
]
