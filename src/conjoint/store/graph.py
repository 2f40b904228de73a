"""A graph as arrays, in memory or mapped from a folder: what batches and exact inference read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..data.fingerprint import fingerprint as fingerprint_of
from ..data.npz import checked_text
from ..data.splits import Split, build_split
from ..errors import InputError
from ..graph.adjacency import adjacency
from ..graph.sparse import rows
from .arrays import Mapped, gather
from .manifest import MANIFEST, read_manifest

Array = npt.NDArray[Any]
PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """An undirected graph without self-loops or parallel edges: node i hears `col[rowptr[i]:rowptr[i + 1]]`.

    It offers the attributes of a loaded `Data` that splits and run folders ask for (`y`, `node_ids`, ...).
    """

    rowptr: Array  # [nodes + 1] int64
    col: Array  # [entries]
    x: Array | Tensor  # [nodes, features]; in memory it may be a sparse CSR tensor
    y: Tensor  # [nodes], -1 = unlabelled
    node_ids: Array
    class_names: list[str]
    name: str
    fingerprint: str
    negative_features: bool
    notes: list[str] = field(default_factory=list)
    part: Array | None = None  # [nodes]: 0, 1, 2 = train, val, test; -1 = none
    folder: Path | None = None
    published: Mapping[str, Split] = field(default_factory=dict)
    _maps: tuple[Mapped, ...] = ()

    @property
    def num_nodes(self) -> int:
        return len(self.rowptr) - 1

    @property
    def num_entries(self) -> int:
        return len(self.col)

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @cached_property
    def degree(self) -> Array:
        """Neighbours of each node, itself not counted. [nodes]"""
        return np.diff(self.rowptr)

    @property
    def known_splits(self) -> Mapping[str, Split]:
        if self.part is None:
            return self.published
        parts = [np.flatnonzero(self.part == k) for k in range(3)]
        return {**self.published, "given": build_split(*parts, labels=self.y.numpy(), name="given")}

    def features(self, nodes: Array) -> Tensor:
        """Their rows of x, in memory. [len(nodes), features] float32"""
        if isinstance(self.x, Tensor):
            return rows(self.x, torch.from_numpy(np.asarray(nodes, dtype=np.int64)))
        return torch.from_numpy(np.ascontiguousarray(gather(self.x, nodes, self.release), dtype=np.float32))

    def speakers(self, places: Array) -> Array:
        """Entries of `col` as int64. [len(places)]"""
        return gather(self.col, places, self.release).astype(np.int64)

    def release(self) -> None:
        """Give mapped pages back. Without it a pass over the graph would leave all of it resident."""
        for mapped in self._maps:
            mapped.release()


def is_stored(path: str | Path) -> bool:
    """Whether a path names a graph folder, complete or not."""
    return (Path(path) / MANIFEST).exists()


def open_graph(folder: str | Path) -> StoredGraph:
    """A folder that `ingest` made. Labels are read, everything else stays on the disk until it is used."""
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
    return StoredGraph(
        rowptr=rowptr,
        col=maps["col"].values,
        x=maps["x"].values,
        y=torch.from_numpy(y),
        node_ids=maps["ids"].values,
        class_names=list(manifest.class_names),
        name=manifest.name,
        fingerprint=manifest.fingerprint,
        negative_features=manifest.negative_features,
        notes=list(manifest.notes),
        part=np.array(maps["part"].values) if "part" in maps else None,
        folder=folder.absolute(),
        _maps=tuple(maps.values()),
    )


def stored_from(data: Data) -> StoredGraph:
    """The same graph as arrays in memory. It must be undirected and simple, as the data stage makes it."""
    if data.x is None or data.edge_index is None or data.y is None:
        raise InputError("data: training in batches needs features, edges and labels")
    if getattr(data, "edge_weight", None) is not None:
        raise InputError("data.edge_weight: batches do not take edge weights; train on the full graph")
    count = int(data.num_nodes or 0)
    adj = adjacency(data.edge_index.cpu(), count, self_loops=False)
    key = adj.row * count + adj.col
    simple = bool((key.diff() > 0).all()) and not bool((adj.row == adj.col).any())
    if not simple or not torch.equal(key, (adj.col * count + adj.row).sort().values):
        raise InputError(
            "data.edge_index: batches need an undirected graph without self-loops or parallel edges; "
            "conjoint.data.from_any makes it one"
        )
    x = data.x.cpu()
    x = x if x.is_floating_point() else x.float()
    values = x.values() if x.layout == torch.sparse_csr else x
    ids = getattr(data, "node_ids", None)
    return StoredGraph(
        rowptr=adj.rowptr.numpy(),
        col=adj.col.numpy(),
        x=x,
        y=data.y.cpu(),
        node_ids=np.arange(count) if ids is None else np.asarray(ids),
        class_names=list(getattr(data, "class_names", None) or []),
        name=str(getattr(data, "name", None) or "unnamed"),
        fingerprint=fingerprint_of(data),
        negative_features=bool((values < 0).any()),
        notes=list(getattr(data, "notes", None) or []),
        published=getattr(data, "known_splits", None) or {},
    )


def to_data(graph: StoredGraph) -> Data:
    """The whole graph in memory, as `conjoint.data.load` would give it. It keeps its fingerprint."""
    row = np.repeat(np.arange(graph.num_nodes), graph.degree)
    edge_index = np.stack([row, np.asarray(graph.col, dtype=np.int64)])
    if edge_index.size and not 0 <= edge_index[1].min() <= edge_index[1].max() < graph.num_nodes:
        raise InputError(f"{graph.folder}/col.npy: an edge to a node that is not there; ingest it again")
    x = graph.x if isinstance(graph.x, Tensor) else torch.from_numpy(np.array(graph.x, dtype=np.float32))
    data = Data(x=x, edge_index=torch.from_numpy(edge_index), y=graph.y)
    data.num_nodes = graph.num_nodes
    try:
        data.node_ids = checked_text(np.array(graph.node_ids))
    except ValueError as error:
        raise InputError(f"{graph.folder}/ids.npy: {error}; ingest the graph again") from None
    data.class_names, data.name, data.notes = graph.class_names, graph.name, graph.notes
    data.known_splits, data.fingerprint = graph.known_splits, graph.fingerprint
    graph.release()
    return data
