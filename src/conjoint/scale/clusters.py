"""Clusters of nodes with few edges between them, by METIS."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..store import StoredGraph

# Bytes that METIS takes per entry and per node, from the growth of the process (docs/scale.md).
METIS_PER_ENTRY, METIS_PER_NODE = 92, 200


def metis_bytes(graph: StoredGraph) -> int:
    return METIS_PER_ENTRY * graph.num_entries + METIS_PER_NODE * graph.num_nodes


def clusters(graph: StoredGraph, parts: int, seed: int) -> npt.NDArray[Any]:
    """The cluster of each node, numbered without gaps; a function of the arguments alone. [nodes] int32"""
    if parts <= 1:
        return np.zeros(graph.num_nodes, dtype=np.int32)
    try:
        import pymetis
    except ImportError:
        raise InputError(
            "--batch clusters needs pymetis, which is not installed; pip install pymetis, or use "
            "--batch neighbours"
        ) from None
    # METIS reads its seed as a C int.
    options = pymetis.Options(seed=seed % (2**31 - 1))
    kind = pymetis.zero_copy_dtype()
    csr = pymetis.CSRAdjacency(np.asarray(graph.rowptr, dtype=kind), np.asarray(graph.col, dtype=kind))
    found = pymetis.part_graph(min(parts, graph.num_nodes), csr, options=options)
    return np.unique(np.asarray(found.vertex_part), return_inverse=True)[1].astype(np.int32)
