"""The graph that every stage works on: made once, frozen, owner of all that is derived from it."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from ..text import count
from .adjacency import Adjacency, adjacency, tidy_edges
from .embeddings import structural_features
from .mapped import Mapped, gather
from .sparse import SparseChoice, pack_features, row_normalise, rows, stored, to_csr, to_scipy
from .splits import Split, build_split, named_split

Array = npt.NDArray[Any]
Made = TypeVar("Made")
SPECTRAL = 64  # columns of features that are made from the edges where a graph has none
PIECE = 1 << 20  # numbers of a mapped array taken at a time
MAY_OVERLAP = ("released", "public")  # the authors' release shares nodes between validation and test


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph, in memory or mapped from a folder.

    What is derived from it (adjacency, fingerprint, features as a network reads them, splits, scores of
    interventions) is computed when it is first asked for, and then kept for as long as the graph lives.

    Args:
        given_x: features: a dense or sparse CSR tensor, an array mapped from a file, or None.
        y: class of each node, -1 where it is not known. [nodes] int64
        edges: [2, entries] (row 0 sources, row 1 targets), or the rows (rowptr, col) of an undirected simple
            graph, whose `col` may be mapped.
        edge_weight: [entries] positive numbers, or None.
        ids: the user's own name of each node; `node_ids` counts from 0 where there are none.
        published: splits that came with the data, by name: rows of train, val, test. See `known_splits`.
        label_weight: how much each label counts in training; None: all alike. No part of the fingerprint.
        notes: what was assumed or changed when it was read.
        columns: what each column of features in a user's table was taken for.
        benchmark: one of the field's graphs, where the paper's recipe for a split is the usual one.
    """

    given_x: Tensor | Array | None = field(repr=False)
    y: Tensor = field(repr=False)
    edges: Tensor | tuple[Array, Array] = field(repr=False)
    edge_weight: Tensor | None = field(default=None, repr=False)
    ids: Array | None = field(default=None, repr=False)
    class_names: list[str] = field(default_factory=list, repr=False)
    name: str = "unnamed"
    notes: list[str] = field(default_factory=list, repr=False)
    published: Mapping[str, tuple[Any, Any, Any]] = field(default_factory=dict, repr=False)
    node_time: Array | None = field(default=None, repr=False)
    feature_names: list[str] | None = field(default=None, repr=False)
    folder: Path | None = None
    maps: tuple[Mapped, ...] = field(default=(), repr=False)
    given_fingerprint: str | None = field(default=None, repr=False)
    benchmark: bool = False
    columns: Mapping[str, str] = field(default_factory=dict, repr=False)
    label_weight: Tensor | None = field(default=None, repr=False)
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def node_ids(self) -> Array:
        return np.arange(self.num_nodes) if self.ids is None else self.ids

    @property
    def num_nodes(self) -> int:
        return int(self.y.numel())

    @property
    def num_features(self) -> int:
        return 0 if self.given_x is None else int(self.given_x.shape[1])

    @property
    def num_classes(self) -> int:
        return len(self.class_names) or (int(self.y.max()) + 1 if self.y.numel() else 0)

    @property
    def num_edges(self) -> int:
        """Entries of `edge_index`: each direction counted, no self-loops where the graph was tidied."""
        return len(self.edges[1]) if isinstance(self.edges, tuple) else self.edges.size(1)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, computed the first time that `key` is asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, entries], in memory."""
        if isinstance(self.edges, Tensor):
            return self.edges
        rowptr, mapped = self.edges
        col = np.asarray(mapped, dtype=np.int64)
        if col.size and not 0 <= col.min() <= col.max() < self.num_nodes:
            raise InputError(f"{self.folder}/col.npy: an edge to a node that is not there; ingest it again")
        made = torch.from_numpy(np.stack([np.repeat(np.arange(self.num_nodes), np.diff(rowptr)), col]))
        self.release()
        return made

    @cached_property
    def adjacency(self) -> Adjacency:
        """Entries sorted by target, one self-loop for each node, edge weights if there are any."""
        made = adjacency(self.edge_index, self.num_nodes)
        return made if self.edge_weight is None else made.with_weights(self.edge_weight)

    @cached_property
    def csr(self) -> tuple[Array, Array]:
        """(rowptr, col) without self-loops, for batches: the graph must be undirected and simple."""
        if self.edge_weight is not None:
            raise InputError("edge_weight: batches do not take edge weights; train on the full graph")
        if isinstance(self.edges, tuple):
            return self.edges
        nodes = self.num_nodes
        adj = adjacency(self.edges.cpu(), nodes, self_loops=False)
        key = adj.row * nodes + adj.col
        simple = bool((key.diff() > 0).all()) and not bool((adj.row == adj.col).any())
        if not simple or not torch.equal(key, (adj.col * nodes + adj.row).sort().values):
            raise InputError(
                "edge_index: batches need an undirected graph without self-loops or parallel edges; "
                "conjoint.data.from_any makes it one"
            )
        return adj.rowptr.numpy(), adj.col.numpy()

    @property
    def rowptr(self) -> Array:
        return self.csr[0]

    @property
    def col(self) -> Array:
        return self.csr[1]

    @cached_property
    def degree(self) -> Array:
        """Neighbours of each node, itself not counted. [nodes]"""
        return np.diff(self.rowptr)

    def neighbours(self, places: Array) -> Array:
        """Entries of `col` as int64. [len(places)]"""
        return gather(self.col, places, self.release).astype(np.int64)

    def features(self, nodes: Array) -> Tensor:
        """Rows of x, in memory. [len(nodes), features]"""
        if self.given_x is None or isinstance(self.given_x, Tensor):
            return rows(self.x, torch.from_numpy(np.asarray(nodes, dtype=np.int64)))
        found = gather(self.given_x, nodes, self.release)
        return torch.from_numpy(np.ascontiguousarray(found, dtype=np.float32))

    @property
    def has_features(self) -> bool:
        return self.given_x is not None

    @cached_property
    def x(self) -> Tensor:
        """All features, in memory. [nodes, features]"""
        if self.given_x is None:
            raise InputError(f"{self.name}: the graph has no features; load it with features='spectral:128'")
        if isinstance(self.given_x, Tensor):
            return self.given_x
        return torch.from_numpy(np.array(self.given_x, dtype=np.float32))

    @cached_property
    def has_negative_features(self) -> bool:
        if self.given_x is None or isinstance(self.given_x, Tensor):
            return self.has_features and bool((stored(self.x) < 0).any())
        step = max(1, (1 << 23) // max(1, self.num_features))
        for start in range(0, self.num_nodes, step):
            found = bool((self.given_x[start : start + step] < 0).any())
            self.release()
            if found:
                return True
        return False

    def normalises(self, rule: str) -> bool:
        """Whether rows are divided by their sum under `TrainConfig.row_normalise`."""
        return rule == "always" or (rule == "auto" and not self.has_negative_features)

    def inputs(self, rule: str, like: Tensor) -> Tensor:
        """All features as a network reads them: of its precision, on its device, rows divided or not."""
        divided = self.normalises(rule)

        def make() -> Tensor:
            x = self.x.to(like.dtype)  # half precision and whole numbers are read as its own kind
            return (row_normalise(x) if divided else x).to(like.device)

        return self.once(("inputs", divided, like.dtype, like.device), make)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over features (dense or sparse alike), edges, weights, labels, ids and class names."""
        if self.given_fingerprint is not None:
            return self.given_fingerprint
        digest = hashlib.sha256()

        def add(name: str, array: Array) -> None:
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())

        if self.has_features:
            x = to_csr(to_scipy(self.x))  # one form for both layouts: sorted, without stored zeros
            add("size", np.array(x.shape))
            for name, part in (("crow", x.crow_indices()), ("col", x.col_indices()), ("values", x.values())):
                add(name, part.numpy())
        if isinstance(self.edges, Tensor):
            add("edge_index", self.edges.cpu().numpy())
        else:  # the same bytes piece by piece, since 16 for each entry may be more than there is memory
            rowptr, col = self.edges
            digest.update(f"edge_index {np.dtype(np.int64).str} {(2, len(col))}\n".encode())
            for start in range(0, self.num_nodes, PIECE):
                degree = np.diff(rowptr[start : start + PIECE + 1])
                digest.update(np.repeat(np.arange(start, start + len(degree)), degree).data)
            for start in range(0, len(col), PIECE):
                digest.update(col[start : start + PIECE].astype(np.int64).data)
                self.release()
        if self.edge_weight is not None:
            add("edge_weight", self.edge_weight.cpu().numpy())
        add("y", self.y.cpu().numpy())
        if self.ids is not None:
            add("node_ids", np.asarray(self.ids))
        digest.update("\n".join(self.class_names).encode())
        return digest.hexdigest()

    @cached_property
    def known_splits(self) -> dict[str, Split]:
        """The published splits, checked and sealed."""
        labels = self.y.cpu().numpy()
        return {
            name: build_split(*parts, labels=labels, name=name, overlap_is_known=name in MAY_OVERLAP)
            for name, parts in self.published.items()
        }

    def split(self, name: str = "per-class", seed: int = 0, **options: Any) -> Split:
        """The split called so: a pure function of the labels, the seed and the options of the rule."""
        key = ("split", name, seed, *sorted(options.items()))
        return self.once(key, lambda: named_split(self, name, seed, **options))

    def changed(self, **parts: Any) -> "Graph":
        """A graph with other parts: given_x, edges, edge_weight, ... Nothing derived is carried over."""
        return replace(self, **{"given_fingerprint": None, **parts})

    def with_features(self, kind: str | None, seed: int = 0, sparse: SparseChoice = "auto") -> "Graph":
        """With structural features by name (`spectral:128`). None: with its own, or some if it has none."""
        if kind is None and self.has_features:
            return self if sparse == "auto" else self.changed(given_x=pack_features(self.x, sparse))
        if kind is None:
            kind = f"spectral:{max(1, min(SPECTRAL, self.num_nodes // 4))}"
        made = structural_features(kind, self.edge_index, self.num_nodes, seed)
        notes = [*self.notes, f"features: {kind} made from the edges, seed {seed}"]
        if self.has_features:
            notes.append("the graph's own features were set aside")
        return self.changed(given_x=made, feature_names=None, notes=notes)

    def release(self) -> None:
        """Give mapped pages back. Without it a pass over a folder would leave all of it resident."""
        for mapped in self.maps:
            mapped.release()


def build_graph(
    source: Array,
    target: Array,
    *,
    labels: Array,
    name: str,
    x: Any = None,
    weight: Array | None = None,
    notes: Sequence[str] = (),
    **parts: Any,
) -> Graph:
    """A tidy graph (undirected, simple, no self-loops) from pairs of rows, with notes on what changed.

    `x` is an array, a SciPy matrix or a tensor; `parts` are further arguments of `Graph`.
    """
    notes = list(notes)
    edge_index, edge_weight = tidy_edges(source, target, len(labels), weight, notes)
    if edge_index.size(1) == 0:
        raise InputError(f"{name} has no edges between different nodes; attention needs some")
    return Graph(
        given_x=None if x is None else pack_features(x, "auto"),
        y=torch.as_tensor(labels, dtype=torch.int64),
        edges=edge_index,
        edge_weight=edge_weight,
        name=name,
        notes=notes,
        **parts,
    )


def as_graph(given: Any) -> Graph:
    """A `Graph` as it is, or one made from PyG's `Data`, its edges as they are, its masks as known splits."""
    if isinstance(given, Graph):
        return given
    edges = getattr(given, "edge_index", None)
    if not isinstance(edges, Tensor):
        raise InputError(
            f"graph: a {type(given).__name__} without edge_index; give a Graph or PyG's Data with one"
        )
    x, y = getattr(given, "x", None), getattr(given, "y", None)
    sized = next((part for part in (y, x) if part is not None), None)
    nodes = int(getattr(given, "num_nodes", 0)) if sized is None else sized.size(0)
    labels = torch.full((nodes,), -1) if y is None else y.squeeze(-1) if y.dim() == 2 else y
    weight = getattr(given, "edge_weight", None)
    masks = [getattr(given, f"{part}_mask", None) for part in ("train", "val", "test")]
    known: dict[str, Any] = {}
    if all(isinstance(mask, Tensor) and mask.dim() == 1 for mask in masks):
        parts = tuple(mask.nonzero().squeeze(1).cpu().numpy() for mask in masks if mask is not None)
        known = {"given": parts, "public": parts}
    return Graph(given_x=x, y=labels.long(), edges=edges, edge_weight=weight, published=known)


def make_split(data: Any, name: str = "per-class", seed: int = 0, **options: Any) -> Split:
    """The split `name` of a graph (or PyG's `Data`). `options` are those of the rule.

    >>> from conjoint.data import load_graph
    >>> make_split(load_graph("cora", source="embedded"), "per-class", seed=0).sizes
    (140, 500, 1000)
    """
    return as_graph(data).split(name, seed, **options)


def without_label(labels: Array, names: Sequence[str], notes: list[str]) -> None:
    """Note how many nodes have no label, where some have."""
    missing = int((labels < 0).sum())
    if names and missing:
        notes.append(f"{count(missing, 'node')} without a label")
