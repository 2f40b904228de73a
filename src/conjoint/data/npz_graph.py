"""A whole graph in one .npz: plain arrays under plain names.

Edges are ``edges`` [E, 2] or ``edge_index`` [2, E] or a CSR matrix ``adj_data/_indices/_indptr/_shape``. The
rest may be absent: features ``x`` or CSR ``x_*`` or ``attr_*``; ``y`` or ``labels``; ``edge_weight``,
``node_ids``, ``class_names``, and ``train``, ``val``, ``test``. The paper's release is such a file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from conjoint.data.arrays import graph_from_arrays
from conjoint.data.limits import MAX_BYTES
from conjoint.data.npz import read_arrays
from conjoint.errors import InputError
from conjoint.graph.graph import Graph

Arrays = dict[str, npt.NDArray[Any]]


def read_npz_graph(path: Path, name: str, max_bytes: int = MAX_BYTES) -> Graph:
    held = read_arrays(path, max_bytes=max_bytes)
    place = str(path)
    adjacency = csr_from(held, "adj", place).tocoo() if "adj_data" in held else None
    if adjacency is not None:
        ends, weight = np.stack([adjacency.row, adjacency.col]), _unless_ones(adjacency.data)
    elif "edge_index" in held:
        ends, weight = held["edge_index"], held.get("edge_weight")
    elif "edges" in held:
        ends, weight = held["edges"].T, held.get("edge_weight")
    else:
        raise InputError(
            f"{place} has no edges, edge_index or adj_data; it has {', '.join(held) or 'no arrays'}"
        )
    x = held.get("x")
    for prefix in ("x", "attr"):
        if f"{prefix}_data" in held:
            x = csr_from(held, prefix, place)
    if x is not None and not sp.issparse(x) and x.dtype.kind not in "iufb":
        raise InputError(f"{place}: x holds {x.dtype}, not numbers")
    y = held.get("y", held.get("labels"))
    ids = held.get("node_ids", held.get("node_names"))
    sized = next((a for a in (y, ids, x) if a is not None and len(a.shape) > 0), None)
    if sized is None and ends.ndim == 2 and ends.size and ends.dtype.kind in "iu":
        num_nodes = int(ends.max()) + 1 if adjacency is None else adjacency.shape[0]
    else:
        num_nodes = 0 if sized is None else int(sized.shape[0])
    if num_nodes > MAX_UNNAMED and sized is None:
        raise InputError(
            f"{place}: edges name node {num_nodes - 1:,}, but nothing says there are so many nodes"
        )
    names = held.get("class_names")
    val = held.get("val", held.get("valid"))
    split = None
    if val is not None and {"train", "test"} <= held.keys():
        split = (held["train"], val, held["test"])
    return graph_from_arrays(
        ends,
        place=place,
        name=name,
        num_nodes=num_nodes,
        x=x,
        y=y,
        node_ids=ids,
        class_names=None if names is None else names.astype(np.str_).ravel().tolist(),
        weight=weight,
        split=split,
    )


# Rows of 128 structural features for more nodes than this would not fit in memory here.
MAX_UNNAMED = 50_000_000


def csr_from(held: Arrays, prefix: str, place: str) -> sp.csr_matrix:
    """The SciPy matrix stored as prefix_data, _indices, _indptr and _shape, with its indices checked."""
    try:
        data, indices, indptr, shape = (held[f"{prefix}_{p}"] for p in ("data", "indices", "indptr", "shape"))
        matrix = sp.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format()
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{place}: {prefix}_* do not form a sparse matrix ({error}); save it again"
        ) from None
    return matrix


def _unless_ones(weight: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    return None if (weight == 1).all() else weight
