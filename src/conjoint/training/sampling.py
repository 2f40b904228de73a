"""Parts of a graph with numbers of their own: sampled neighbourhoods, induced subgraphs, clusters."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field, _prefix
from ..graph.graph import Graph

Array = npt.NDArray[Any]
ALL = np.iinfo(np.int64).max
# Bytes that METIS takes per entry and per node, from the growth of the process (docs/scale.md).
METIS_PER_ENTRY, METIS_PER_NODE = 92, 200


class Drawn(NamedTuple):
    """Some neighbours of each of some nodes. All of them where there are few, else draws with replacement."""

    rowptr: Array  # [nodes + 1]
    col: Array  # [drawn] global ids
    offset: Array  # [drawn] place within the node's neighbours
    degree: Array  # [nodes] how many there are


def draw(graph: Graph, nodes: Array, most: int, rng: np.random.Generator | None) -> Drawn:
    """At most `most` neighbours of each node, each draw uniform. With most=ALL: every neighbour."""
    degree = graph.rowptr[nodes + 1] - graph.rowptr[nodes]
    count = np.minimum(degree, most)
    rowptr = np.concatenate([[0], np.cumsum(count)])
    offset = np.arange(rowptr[-1]) - np.repeat(rowptr[:-1], count)
    crowded = degree > most
    if rng is not None and crowded.any():
        by_chance = np.repeat(crowded, count)
        offset[by_chance] = rng.integers(0, np.repeat(degree, count)[by_chance])
    col = graph.neighbours(np.repeat(graph.rowptr[nodes], count) + offset)
    return Drawn(rowptr, col, offset, degree)


class Places:
    """Local numbers of global ids. One array over all nodes, cleared after use, serves every batch."""

    def __init__(self, num_nodes: int) -> None:
        self._place = np.full(num_nodes, -1, dtype=np.int64)
        self.ids: Array = np.empty(0, dtype=np.int64)

    def __enter__(self) -> "Places":
        return self

    def __exit__(self, *_: object) -> None:
        self._place[self.ids] = -1
        self.ids = np.empty(0, dtype=np.int64)

    def add(self, ids: Array) -> Array:
        """Number those that have no number yet; they are returned, sorted."""
        new = np.sort(ids[self._place[ids] < 0])  # many times faster than np.unique, which hashes
        first = np.ones(len(new), dtype=bool)
        np.not_equal(new[1:], new[:-1], out=first[1:])
        self.append(new[first])
        return new[first]

    def append(self, ids: Array) -> None:
        """Number these, all of them new, in this order."""
        self._place[ids] = np.arange(len(self.ids), len(self.ids) + len(ids))
        self.ids = np.concatenate([self.ids, ids])

    def of(self, ids: Array) -> Array:
        """-1 for those without a number."""
        return self._place[ids]


def neighbourhood(
    graph: Graph, targets: Array, fanout: tuple[int, ...], rng: np.random.Generator | None, places: Places
) -> Field:
    """A receptive field in which a node has itself and at most `fanout[hop]` different neighbours."""
    places.append(targets)
    frontier, sizes = targets, [len(targets)]
    counts, cols = [], []
    for most in fanout:
        row, col = _different(draw(graph, frontier, most, rng), most)
        own = places.of(frontier)
        frontier = places.add(col)
        entry_row, entry_col = _with_loops(row, places.of(col), own)
        counts.append(np.bincount(entry_row, minlength=len(own)))
        cols.append(entry_col)
        sizes.append(len(places.ids))
    rowptr, col_t = _rowptr(np.concatenate(counts)), torch.from_numpy(np.concatenate(cols))
    layers = [_prefix(rowptr, col_t, None, sizes[k], sizes[k + 1]) for k in reversed(range(len(fanout)))]
    return Field(torch.from_numpy(places.ids), tuple(layers))


def induced(graph: Graph, nodes: Array, layers: int, places: Places) -> Field:
    """The nodes with all edges among them, for every layer alike."""
    places.append(nodes)
    drawn, own = draw(graph, nodes, ALL, None), np.arange(len(nodes))
    row, col = np.repeat(own, np.diff(drawn.rowptr)), places.of(drawn.col)
    inside = col >= 0
    row, col = _with_loops(row[inside], col[inside], own)
    rowptr = _rowptr(np.bincount(row, minlength=len(nodes)))
    adj = Adjacency(rowptr, torch.from_numpy(col), torch.arange(len(col)), len(nodes))
    return Field(torch.from_numpy(places.ids), (adj,) * layers)


def _rowptr(counts: Array) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))


def _different(drawn: Drawn, most: int) -> tuple[Array, Array]:
    """Targets and sources; a neighbour that was drawn twice counts once."""
    row = np.repeat(np.arange(len(drawn.degree)), np.diff(drawn.rowptr))
    if not bool((drawn.degree > most).any()):
        return row, drawn.col
    order = np.lexsort((drawn.offset, row))
    row, offset = row[order], drawn.offset[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (offset[1:] != offset[:-1])
    return row[new], drawn.col[order][new]


def _with_loops(row: Array, col: Array, own: Array) -> tuple[Array, Array]:
    """Entries sorted by row, each row led by its self-loop. `own` are the places of the rows themselves."""
    row = np.concatenate([np.arange(len(own)), row])
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate([own, col])[order]


def metis_bytes(nodes: int, entries: int) -> int:
    return METIS_PER_ENTRY * entries + METIS_PER_NODE * nodes


def clusters(graph: Graph, parts: int, seed: int) -> Array:
    """The cluster of each node, by METIS: few edges between clusters. [nodes] int32

    Numbered without gaps; a function of the arguments alone.
    """
    if parts <= 1:
        return np.zeros(graph.num_nodes, dtype=np.int32)
    try:
        import pymetis  # an optional extra
    except ImportError:
        raise InputError(
            "--batch clusters needs pymetis, which is not installed; pip install pymetis, or use "
            "--batch neighbours"
        ) from None
    options = pymetis.Options(seed=seed % (2**31 - 1))  # METIS reads its seed as a C int
    kind = pymetis.zero_copy_dtype()
    csr = pymetis.CSRAdjacency(np.asarray(graph.rowptr, dtype=kind), np.asarray(graph.col, dtype=kind))
    found = pymetis.part_graph(min(parts, graph.num_nodes), csr, options=options)
    return np.unique(np.asarray(found.vertex_part), return_inverse=True)[1].astype(np.int32)
