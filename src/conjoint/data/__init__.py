"""Graphs in: the paper's benchmarks, the user's own files, honest splits."""

from conjoint.data.benchmarks import load
from conjoint.data.fingerprint import fingerprint
from conjoint.data.splits import Split, make_split
from conjoint.graph.sparse import row_normalise

__all__ = ["Split", "fingerprint", "load", "make_split", "row_normalise"]
