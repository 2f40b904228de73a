"""NumPy archives, read without pickle and without trusting the sizes they state; and whole graphs in them.

In a graph's .npz edges are ``edges`` [E, 2] or ``edge_index`` [2, E] or a CSR matrix
``adj_data/_indices/_indptr/_shape``. The rest may be absent: features ``x`` or CSR ``x_*`` or ``attr_*``;
``y`` or ``labels``; ``edge_weight``, ``node_ids``, ``class_names``, and ``train``, ``val``, ``test``. The
paper's release is such a file.
"""

import lzma
import math
import warnings
import zipfile
import zlib
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.mapped import checked_text, read_header
from .arrays import graph_from_arrays
from .read_table import MAX_BYTES

Arrays = dict[str, npt.NDArray[Any]]
# Rows of 128 structural features for more nodes than this would not fit in memory here.
MAX_UNNAMED = 50_000_000
_BROKEN = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)


def read_arrays(
    path: Path, *, skip: Collection[str] = (), max_bytes: int = MAX_BYTES
) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an .npz except those in ``skip``. A pickled array is an error, whatever its name."""
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            # NumPy remarks on files saved by Python 2; they read well.
            warnings.filterwarnings("ignore", message="Reading `.npy`", category=UserWarning)
            members = [m for m in archive.infolist() if m.filename.removesuffix(".npy") not in skip]
            stated = sum(m.file_size for m in members)
            if stated > max_bytes:
                raise InputError(f"{path} unpacks to {stated:,} bytes, more than the limit of {max_bytes:,}")
            return {m.filename.removesuffix(".npy"): _read_member(archive, m, path) for m in members}
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except (*_BROKEN, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} is not a whole .npz archive ({reason}); save it again with numpy.savez"
        ) from None


def read_array(content: bytes, path: Path) -> npt.NDArray[Any]:
    """The array of an .npy file; nothing larger than the file is ever allocated."""
    stream = BytesIO(content)
    try:
        shape, dtype, header = read_header(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize + header != len(content):
            raise ValueError("its header and its size disagree")
        stream.seek(0)
        return checked_text(np.lib.format.read_array(stream, allow_pickle=False))
    except _BROKEN as error:
        raise InputError(
            f"{path} is not a whole array of numbers or text ({error}); restore it from a copy"
        ) from None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        shape, dtype, header = read_header(stream)
    if dtype.hasobject:
        raise InputError(
            f"{path}: array {member.filename!r} is a pickle, which can run code and is not opened; "
            "save it as numbers or fixed-width text"
        )
    # NumPy allocates what the header states before it reads, so the header must agree with the archive first.
    if math.prod(shape) * dtype.itemsize + header != member.file_size:
        raise InputError(
            f"{path}: array {member.filename!r} states shape {shape}, which its size contradicts"
        )
    with archive.open(member) as stream:
        return checked_text(np.lib.format.read_array(stream, allow_pickle=False))


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
