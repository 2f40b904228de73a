"""A graph on disk: a folder of plain memory-mapped arrays that may be larger than memory.

manifest.json says what the folder holds. It is written last, so a folder without it is not complete.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from .graph import PIECE, Graph
from .mapped import Array, Mapped, NpyWriter, checked_text
from .sparse import csr_tensor, is_sparse, to_scipy

MANIFEST = "manifest.json"
# 2: features may be sparse, edges may have weights, nodes a time. A folder without these is written as 1.
FORMATS = (1, 2)
SPARSE = ("x_data", "x_indices", "x_indptr")  # in place of x
# name -> the kinds of number that it may hold, in the manifest's order
ARRAYS = {"x": "f", "x_data": "f", "x_indices": "i", "x_indptr": "i", "y": "i", "part": "i", "ids": "iU"}
ARRAYS |= {"time": "f", "col": "i", "rowptr": "i", "weight": "f"}


@dataclass(frozen=True)
class Described:
    """One array as the manifest describes it; the file must agree in every point before it is read."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    name: str
    nodes: int
    entries: int  # both directions of every edge, no self-loops
    features: int
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    negative_features: bool
    notes: tuple[str, ...]
    arrays: Mapping[str, Described]
    format: int = 1
    graph_fingerprint: str | None = None  # that of the graph in memory, where the same bits were read

    @property
    def fingerprint(self) -> str:
        """Tells whether two folders hold the same graph, without reading them."""
        if self.graph_fingerprint is not None:
            return self.graph_fingerprint
        parts = [f"{name} {a.dtype} {a.shape} {a.sha256}" for name, a in sorted(self.arrays.items())]
        return hashlib.sha256("\n".join([*parts, *self.class_names]).encode()).hexdigest()


def is_graph_folder(path: str | Path) -> bool:
    """Whether a path names a graph folder, complete or not."""
    return (Path(path) / MANIFEST).exists()


def write_array(
    folder: Path, name: str, dtype: npt.DTypeLike, parts: Iterable[Array], columns: int | None = None
) -> Described:
    """The array `name` of a graph folder, from pieces in their order."""
    with NpyWriter(folder / f"{name}.npy", dtype, columns) as file:
        for part in parts:
            file.append(part)
    return describe(file)


def describe(file: NpyWriter) -> Described:
    return Described(file.dtype.str, file.shape, file.path.stat().st_size, file.sha256)


def write_folder(folder: Path, graph: Graph, written: Mapping[str, Described]) -> Manifest:
    """`graph` into `folder`, where the arrays of large tables have been `written` piece by piece already."""
    arrays = dict(written)

    def add(name: str, dtype: npt.DTypeLike, values: Array) -> None:
        if name not in arrays:
            pieces = (values[start : start + PIECE] for start in range(0, len(values), PIECE))
            arrays[name] = write_array(folder, name, dtype, pieces, *values.shape[1:])

    x = graph.given_x
    if isinstance(x, Tensor) and is_sparse(x):
        held = to_scipy(x)
        for part, kind in (("data", np.float32), ("indices", np.int64), ("indptr", np.int64)):
            add(f"x_{part}", kind, getattr(held, part))
    else:
        add("x", np.float32, np.asarray(x))
    add("y", np.int32, graph.y.numpy())
    if "given" in graph.published:
        parts = np.full(graph.num_nodes, -1, dtype=np.int8)
        for number, rows in enumerate(graph.published["given"]):
            parts[rows] = number
        add("part", np.int8, parts)
    add("ids", graph.node_ids.dtype, graph.node_ids)
    if graph.node_time is not None:
        add("time", np.float64, graph.node_time)
    if isinstance(graph.edges, Tensor):
        source, target = graph.edges.numpy()
        add("col", np.int32 if graph.num_nodes < 2**31 else np.int64, target)
        degree = np.bincount(source, minlength=graph.num_nodes)
        add("rowptr", np.int64, np.concatenate([[0], np.cumsum(degree)]))
    else:
        add("rowptr", np.int64, graph.edges[0])
    if graph.edge_weight is not None:
        add("weight", np.float32, graph.edge_weight.numpy())
    in_memory = "x" not in written
    manifest = Manifest(
        name=graph.name,
        nodes=graph.num_nodes,
        entries=graph.num_edges,
        features=graph.num_features,
        class_names=tuple(graph.class_names),
        feature_names=tuple(graph.feature_names or ()),
        negative_features=graph.has_negative_features,
        notes=tuple(graph.notes),
        arrays={name: arrays[name] for name in ARRAYS if name in arrays},
        format=2 if in_memory or {"weight", "time"} & set(arrays) else 1,
        graph_fingerprint=graph.fingerprint if in_memory else None,
    )
    content = {key: value for key, value in asdict(manifest).items() if value is not None}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    return manifest


def open_folder(folder: str | Path) -> Graph:
    """A folder that `ingest` made. Labels, weights, times and sparse features are read, others mapped."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    maps = {name: Mapped(folder / f"{name}.npy") for name in manifest.arrays}
    for name, mapped in maps.items():
        described = manifest.arrays[name]
        if (mapped.values.dtype.str, mapped.values.shape) != (described.dtype, described.shape):
            raise InputError(f"{folder / name}.npy: not as the manifest says; ingest the graph again")
    rowptr, y = np.array(maps["rowptr"].values), np.array(maps["y"].values, dtype=np.int64)
    if rowptr[0] != 0 or rowptr[-1] != manifest.entries or bool((np.diff(rowptr) < 0).any()):
        raise InputError(f"{folder / 'rowptr.npy'}: its numbers make no sense; ingest the graph again")
    if y.size and int(y.max()) >= len(manifest.class_names):
        raise InputError(f"{folder / 'y.npy'}: a label beyond the classes; ingest the graph again")
    try:
        for start in range(0, len(y), PIECE):
            checked_text(maps["ids"].values[start : start + PIECE])
    except ValueError as error:
        raise InputError(f"{folder}/ids.npy: {error}; ingest the graph again") from None
    read = {name: np.array(maps[name].values) for name in ("part", "weight", "time", *SPARSE) if name in maps}
    strange = next((name for name, values in read.items() if not np.isfinite(values).all()), None)
    if strange is not None:
        raise InputError(f"{folder / strange}.npy: not all are finite numbers; ingest the graph again")
    part, weight, published = read.get("part"), read.get("weight"), dict[str, Any]()
    if part is not None:
        published["given"] = tuple(np.flatnonzero(part == number) for number in range(3))
    return Graph(
        given_x=maps["x"].values if "x" in maps else _sparse_features(folder, read, manifest),
        y=torch.from_numpy(y),
        edges=(rowptr, maps["col"].values),
        edge_weight=None if weight is None else torch.from_numpy(weight),
        ids=maps["ids"].values,
        class_names=list(manifest.class_names),
        name=manifest.name,
        notes=list(manifest.notes),
        published=published,
        node_time=read.get("time"),
        feature_names=list(manifest.feature_names) or None,
        folder=folder.absolute(),
        maps=tuple(maps.values()),
        given_fingerprint=manifest.fingerprint,
    )


def _sparse_features(folder: Path, read: Mapping[str, Array], manifest: Manifest) -> Tensor:
    crow, col, values = (torch.from_numpy(read[f"x_{part}"]) for part in ("indptr", "indices", "data"))
    try:
        return csr_tensor(crow, col, values, (manifest.nodes, manifest.features))
    except RuntimeError:
        raise InputError(f"{folder}/x_*.npy: no sparse matrix; ingest the graph again") from None


def read_manifest(folder: Path) -> Manifest:
    """The manifest, nothing in it trusted, with the sizes of all files compared to it."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > 64 * 2**20:
            raise InputError(f"{path}: too large for a manifest; is it another file?")
        content: Any = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no {MANIFEST}, so it is no complete graph folder; make one: conjoint ingest"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({(error.strerror or str(error)).lower()})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not valid JSON; ingest the graph again") from None
    found = content.get("format") if isinstance(content, dict) else None
    if type(found) is not int or found not in FORMATS:
        raise InputError(f"{path}: format {found!r}, this version reads {max(FORMATS)}; update conjoint")
    arrays: dict[str, Described] = {}
    try:
        arrays = {str(name): _described(entry) for name, entry in content.pop("arrays").items()}
        for key in ("class_names", "feature_names", "notes"):
            content[key] = tuple(map(str, content[key]))
        made = Manifest(arrays=arrays, **content)
        sound = all(type(getattr(made, key)) is int for key in ("nodes", "entries", "features"))
        sound = sound and isinstance(made.graph_fingerprint, str | None)
    except (TypeError, KeyError, ValueError, AttributeError):
        sound = False
    features = set(SPARSE) if set(SPARSE) & set(arrays) else {"x"}
    needed = {"rowptr", "col", "y", "ids", *features}
    if not sound or not needed <= set(arrays) <= needed | {"part", "weight", "time"}:
        raise InputError(f"{path}: entries are missing or strange; ingest the graph again")
    _check_arrays(made, path)
    return made


def _described(entry: Mapping[str, Any]) -> Described:
    shape = tuple(entry["shape"])
    if not all(type(n) is int and n >= 0 for n in (*shape, entry["bytes"])):
        raise ValueError
    return Described(str(entry["dtype"]), shape, entry["bytes"], str(entry["sha256"]))


def _check_arrays(made: Manifest, path: Path) -> None:
    stored = made.arrays["x_data"].shape if "x_data" in made.arrays else ()
    expected = {
        **dict.fromkeys(("rowptr", "x_indptr"), (made.nodes + 1,)),
        **dict.fromkeys(("col", "weight"), (made.entries,)),
        **dict.fromkeys(("y", "part", "ids", "time"), (made.nodes,)),
        **dict.fromkeys(("x_data", "x_indices"), (math.prod(stored),)),
        "x": (made.nodes, made.features),
    }
    for name, array in made.arrays.items():
        if array.shape != expected[name] or array.dtype[1:2] not in ARRAYS[name]:
            raise InputError(
                f"{path}: {name} is {array.dtype} {list(array.shape)}, expected {list(expected[name])}; "
                "ingest the graph again"
            )
        file = path.with_name(f"{name}.npy")
        try:
            size = file.stat().st_size
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise InputError(f"{file}: {said}; ingest the graph again") from None
        if size != array.bytes:
            raise InputError(
                f"{file}: {size:,} bytes, the manifest says {array.bytes:,}; it is truncated or another "
                "file: ingest the graph again"
            )
