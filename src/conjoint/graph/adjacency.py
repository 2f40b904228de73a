"""The edges of a graph: tidied when they are read, and sorted by target for the layers.

Every later stage (scores, attention, aggregation, penalties) works on this one order, so a score always
stands beside the edge that it belongs to. Self-loops are added here, once.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from ..recording import readable, recording
from ..text import count

Array = npt.NDArray[Any]
T = TypeVar("T")
MEMO = 32  # results that `Adjacency.once` keeps at most; the oldest goes first


class derived(Generic[T]):
    """A cached property; but what is made while torch records stands for another tensor, and is not kept."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        self.func, self.name, self.__doc__ = func, func.__name__, func.__doc__

    def __get__(self, graph: Any, owner: type | None = None) -> T:
        if graph is None:
            return self  # type: ignore[return-value]
        made = self.func(graph)
        if not recording():
            graph.__dict__[self.name] = made
        return made


@dataclass(frozen=True, eq=False)
class Transposed:
    """The same entries sorted by source. `perm[k]` is the place of entry k in the forward order."""

    rowptr: Tensor  # [num_src + 1]
    row: Tensor  # [entries] target of each entry
    perm: Tensor  # [entries]

    @derived
    def place(self) -> Tensor:
        """The other way round: where an entry of the forward order stands here. [entries]"""
        order = torch.arange(self.perm.numel(), device=self.perm.device)
        return torch.empty_like(self.perm).scatter_(0, self.perm, order)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Entries in CSR order: target `i` has the sources `col[rowptr[i]:rowptr[i + 1]]`.

    `perm[e]` is the place of entry `e` in the user's own list of edges, self-loops removed (if the graph
    stage was asked to add them) and the added ones appended, which is the order PyG's GATConv returns.
    Where sources and targets are the same kind of node, target `i` is source `i`: the targets come first.
    """

    rowptr: Tensor  # [num_dst + 1]
    col: Tensor  # [entries]
    perm: Tensor  # [entries]
    num_src: int
    kept: Tensor | None = None  # user's columns that survived the removal of self-loops; None = all of them
    num_loops: int = 0  # how many self-loops were appended
    num_dropped: int = 0  # how many of the user's own self-loops were removed
    log_weight: Tensor | None = None  # [entries]: logarithm of the edge weights, if edges have any

    @property
    def num_dst(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def num_entries(self) -> int:
        return self.col.numel()

    @property
    def num_edges(self) -> int:
        """How many edges the user gave."""
        return self.num_entries - self.num_loops + self.num_dropped

    @derived
    def degree(self) -> Tensor:
        """Size of N_i, the self-loop included. [num_dst]"""
        return self.rowptr.diff()

    @derived
    def row(self) -> Tensor:
        """Target of each entry. [entries]"""
        if recording():  # in operations that every exporter knows
            ends = torch.zeros(self.num_entries + 1, dtype=torch.long, device=self.rowptr.device)
            ends = ends.index_add(0, self.rowptr[1:], torch.ones_like(self.rowptr[1:]))
            return ends[: self.num_entries].cumsum(0)
        targets = torch.arange(self.num_dst, device=self.rowptr.device)
        return targets.repeat_interleave(self.degree, output_size=self.num_entries)

    @derived
    def transposed(self) -> Transposed:
        by_source = torch.sort(self.col, stable=True)
        rowptr = _pointers(by_source.values, self.num_src)
        return Transposed(rowptr, self.row[by_source.indices], by_source.indices)

    @derived
    def simple(self) -> Tensor:
        """Which entries are those of the paper's A: no self-loops, parallel edges once. [entries]"""
        first = torch.ones(self.num_entries, dtype=torch.bool, device=self.col.device)
        if self.num_entries:
            first[1:] = (self.row[1:] != self.row[:-1]) | (self.col[1:] != self.col[:-1])
        return first & (self.row != self.col)

    @derived
    def simple_weight(self) -> Tensor:
        """`simple` as numbers, for sums over the entries of A. [entries] float32"""
        return self.simple.float()

    @derived
    def num_simple(self) -> int:
        """||A||^2: the number of ones in A."""
        return int(self.simple.sum())

    @derived
    def symmetric(self) -> bool:
        """Whether each entry (i, j) has its (j, i)."""
        back = self.transposed
        return torch.equal(self.rowptr, back.rowptr) and torch.equal(self.col, back.row)

    @derived
    def edge_index(self) -> Tensor:
        """The edges attended to, in the user's order with added self-loops at the end. [2, entries]"""
        edges = torch.empty(2, self.num_entries, dtype=torch.long, device=self.col.device)
        edges[:, self.perm] = torch.stack([self.col, self.row])
        return edges

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make()` gives, made once under this key. Graphs made by `without` share it, copies do not."""
        memo: dict[Hashable, Any] = self.__dict__.setdefault("_memo", {})
        if key not in memo:
            made = make()
            if recording():
                return made
            if len(memo) >= MEMO:
                memo.pop(next(iter(memo)))
            memo[key] = made
        return memo[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}

    def to_user_order(self, per_entry: Tensor) -> Tensor:
        """Rows of a per-entry tensor, rearranged to stand beside `edge_index`."""
        out = torch.empty_like(per_entry)
        out[self.perm] = per_entry
        return out

    def from_user_order(self, per_edge: Tensor, loop_value: Tensor) -> Tensor:
        """One row per edge of the user, then `loop_value` ([num_loops, ...]), in entry order."""
        kept = per_edge if self.kept is None else per_edge[self.kept]
        return torch.cat([kept, loop_value.to(kept.dtype)])[self.perm]

    def to(self, device: torch.device | str) -> "Adjacency":
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {name: p.to(device) for name, p in parts.items() if isinstance(p, Tensor)}
        return replace(self, **moved)

    def without(self, dropped: Tensor) -> "Adjacency":
        """The same entries, those in the mask `dropped` with weight zero: nothing is sorted."""
        weight = torch.zeros(self.num_entries, device=self.col.device)
        weight = weight if self.log_weight is None else self.log_weight
        thinned = replace(self, log_weight=weight.masked_fill(dropped, -torch.inf))
        self.__dict__.setdefault("_memo", {})
        made = ("degree", "row", "transposed", "simple", "edge_index", "_memo")
        thinned.__dict__.update({name: self.__dict__[name] for name in made if name in self.__dict__})
        return thinned

    def with_weights(self, edge_weight: Tensor) -> "Adjacency":
        """The same graph with a positive weight per edge of the user. Weight 2 counts as two parallel edges.

        An added self-loop weighs as much as the node's edges do on average, so that only ratios matter.
        """
        if edge_weight.shape != (self.num_edges,):
            raise InputError(
                f"edge_weight: it has shape {tuple(edge_weight.shape)}; expected one number for each of the "
                f"{self.num_edges} edges"
            )
        if not bool((torch.isfinite(edge_weight) & (edge_weight > 0)).all()):
            raise InputError("edge_weight: weights must be finite and above 0; drop the edges that weigh 0")
        kept = edge_weight if self.kept is None else edge_weight[self.kept]
        targets = self.edge_index[1, : kept.numel()]
        count = torch.bincount(targets, minlength=self.num_dst)
        total = kept.new_zeros(self.num_dst).index_add(0, targets, kept)
        loops = torch.where(count > 0, total / count.clamp(min=1), 1.0)[: self.num_loops]
        return replace(self, log_weight=self.from_user_order(edge_weight, loops).log())


@dataclass(frozen=True, eq=False)
class Unsorted(Adjacency):
    """Edges whose numbers cannot be read, because torch records the computation (export, compile, trace) or
    knows their shape alone: in the user's order, and for plain torch.

    All sizes follow from sizes. So where self-loops are added, those of the user stay, with weight zero.
    """

    target: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))  # [entries]
    count: int = 0  # of targets
    own: Tensor | None = None  # [entries] bool: self-loops of the user that another took the place of

    @property
    def num_dst(self) -> int:
        return self.count

    @property
    def row(self) -> Tensor:
        return self.target

    @property
    def degree(self) -> Tensor:
        counted = torch.ones_like(self.target) if self.own is None else (~self.own).long()
        return counted.new_zeros(self.count).index_add(0, self.target, counted)

    @property
    def simple(self) -> Tensor:
        raise InputError(
            "graph: A of the intervention's loss is made from numbers that torch does not show while it "
            "records; pass an Adjacency (conjoint.adjacency(edge_index, num_nodes)) instead of an edge_index"
        )

    @property
    def edge_index(self) -> Tensor:
        return torch.stack([self.col, self.target])

    def to_user_order(self, per_entry: Tensor) -> Tensor:
        return per_entry

    def from_user_order(self, per_edge: Tensor, loop_value: Tensor) -> Tensor:
        return torch.cat([per_edge, loop_value.to(per_edge.dtype)])


def _unsorted(src: Tensor, dst: Tensor, num_src: int, num_dst: int, self_loops: bool) -> Unsorted:
    own, log_weight = None, None
    if self_loops:
        loops = torch.arange(num_dst, device=src.device)
        own = torch.cat([src == dst, torch.zeros_like(loops, dtype=torch.bool)])
        src, dst = torch.cat([src, loops]), torch.cat([dst, loops])
        log_weight = torch.zeros_like(src, dtype=torch.float32).masked_fill(own, -torch.inf)
    return Unsorted(
        rowptr=src.new_empty(0),
        col=src,
        perm=torch.arange(src.numel(), device=src.device),
        num_src=num_src,
        num_loops=num_dst if self_loops else 0,
        log_weight=log_weight,
        target=dst,
        count=num_dst,
        own=own,
    )


def adjacency(
    edges: Tensor | Adjacency,
    num_nodes: int | tuple[int, int],
    *,
    self_loops: bool = True,
    flow: str = "source_to_target",
) -> Adjacency:
    """Sort edges by target.

    Args:
        edges: `[2, E]` integer tensor (PyG's `edge_index` or `EdgeIndex`: row 0 sources, row 1 targets), a
            torch sparse adjacency (PyG's transposed convention: rows are targets), or an `Adjacency`, which
            is returned as it is.
        num_nodes: number of nodes, or (sources, targets) of a bipartite graph.
        self_loops: replace any self-loops by exactly one per node.
        flow: PyG's message-passing direction.
    """
    num_src, num_dst = num_nodes if isinstance(num_nodes, tuple) else (num_nodes, num_nodes)
    if isinstance(edges, Adjacency):
        if (edges.num_src, edges.num_dst) != (num_src, num_dst):
            raise InputError(
                f"graph: it has {edges.num_src} sources and {edges.num_dst} targets, but the features have "
                f"{num_src} and {num_dst} rows; pass the features of exactly these nodes"
            )
        return edges
    src, dst = _endpoints(edges, flow)
    if self_loops and num_src != num_dst:
        raise InputError(
            f"add_self_loops=True: the graph is bipartite ({num_src} sources, {num_dst} targets), so a "
            "node has no loop to itself; pass add_self_loops=False"
        )
    if not readable(src):
        return _unsorted(src, dst, num_src, num_dst, self_loops)
    _check_ids(src, num_src, "source")
    _check_ids(dst, num_dst, "target")
    num_edges, kept = src.numel(), None
    if self_loops:
        proper = src != dst
        kept = None if bool(proper.all()) else proper.nonzero().squeeze(1)
        loops = torch.arange(num_dst, device=src.device)
        src, dst = (torch.cat([end if kept is None else end[kept], loops]) for end in (src, dst))
    # One key keeps rows sorted by source too, so neighbours are read in memory order.
    order = torch.sort(dst * num_src + src, stable=True).indices
    return Adjacency(
        rowptr=_pointers(dst[order], num_dst),
        col=src[order],
        perm=order,
        num_src=num_src,
        kept=kept,
        num_loops=num_dst if self_loops else 0,
        num_dropped=0 if kept is None else num_edges - kept.numel(),
    )


SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


def _endpoints(edges: Tensor, flow: str) -> tuple[Tensor, Tensor]:
    if isinstance(edges, Tensor) and edges.layout in SPARSE:
        edges = edges.to_sparse_coo().coalesce().indices().flip(0)  # PyG's adj_t: row = target
    if not isinstance(edges, Tensor) or edges.dim() != 2 or edges.size(0) != 2:
        found = f"shape {tuple(edges.shape)}" if isinstance(edges, Tensor) else type(edges).__name__
        raise InputError(f"edge_index: expected an integer tensor of shape [2, edges], got {found}")
    if edges.is_floating_point() or edges.dtype == torch.bool:
        raise InputError(f"edge_index: expected integer node ids, got {edges.dtype}; convert it with .long()")
    edges = (edges.as_subclass(Tensor) if readable(edges) else edges).long()
    return (edges[0], edges[1]) if flow == "source_to_target" else (edges[1], edges[0])


def _check_ids(ids: Tensor, count: int, side: str) -> None:
    if ids.numel() == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= count:
        raise InputError(
            f"edge_index: {side} id {low if low < 0 else high} is out of range for {count} nodes; "
            "ids run from 0 to nodes - 1, and isolated nodes count too"
        )


def _pointers(sorted_ids: Tensor, count: int) -> Tensor:
    counts = torch.bincount(sorted_ids, minlength=count)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def tidy_edges(
    source: Array, target: Array, num_nodes: int, weight: Array | None, notes: list[str]
) -> tuple[Tensor, Tensor | None]:
    """Undirected, no self-loops, no duplicates, sorted by (source, target), with a note for each change.

    Weights of repeated lines add up; an edge given in both directions keeps the larger of the two sums, so
    that a symmetric list and a one-way list of the same graph give the same weights.
    """
    given = len(source)
    keep = source != target
    loops = given - int(keep.sum())
    if loops:
        notes.append(f"dropped {count(loops, 'self-loop')} (layers add their own)")
        source, target = source[keep], target[keep]
        weight = None if weight is None else weight[keep]
    key = source.astype(np.int64) * num_nodes
    key += target
    one_way, value = merge(key, weight, np.add)
    repeated = len(key) - len(one_way)
    del key  # with many edges every array counts: 80 MB for 10 million
    if repeated:
        merged = "merged (weights added)" if weight is not None else "dropped"
        notes.append(f"{merged} {count(repeated, 'duplicate edge')}")
    ends = _unpack(one_way, num_nodes)
    doubled = np.concatenate([one_way, ends[1] * num_nodes + ends[0]])
    directed = len(one_way)
    del ends, one_way
    both, value = merge(doubled, None if value is None else np.concatenate([value, value]), np.maximum)
    del doubled
    if len(both) != directed:
        notes.append(f"made undirected: {count(len(both) // 2, 'edge')} became {len(both)} entries")
    weights = None if value is None else torch.from_numpy(value.astype(np.float32))
    return torch.from_numpy(_unpack(both, num_nodes)), weights


def merge(key: Array, value: Array | None, join: np.ufunc) -> tuple[Array, Array | None]:
    """Sorted unique keys, values of equal keys joined in order. Without values ``key`` is sorted in place."""
    if value is None:
        key.sort()
        return key[_first_of_each(key)], None
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order].astype(np.float64)
    starts = np.flatnonzero(_first_of_each(key))
    return key[starts], join.reduceat(value, starts) if len(starts) else value


def _unpack(key: Array, num_nodes: int) -> Array:
    """Keys back to pairs [2, E]; NumPy's own divmod on signed numbers is ten times slower."""
    ends = np.empty((2, len(key)), dtype=np.int64)
    np.floor_divide(key, num_nodes, out=ends[0])
    np.multiply(ends[0], -num_nodes, out=ends[1])
    ends[1] += key
    return ends


def _first_of_each(sorted_key: Array) -> Array:
    first = np.ones(len(sorted_key), dtype=bool)
    np.not_equal(sorted_key[1:], sorted_key[:-1], out=first[1:])
    return first
