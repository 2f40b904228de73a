"""Parts of a graph with numbers of their own, and batches made of them.

Sampled neighbourhoods, induced subgraphs, clusters. The k-th batch of an epoch follows from (seed, epoch, k)
alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field, _prefix
from ..graph.graph import Graph
from ..graph.sparse import row_normalise
from .config import BatchConfig
from .penalty import PenaltySample

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


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """Some nodes with what their logits depend on. `rows` are the only rows of V that a batch may touch."""

    number: int
    x: Tensor  # [nodes, features] of field.n_id
    field: Field
    pick: Tensor  # rows of the logits that have a label to learn
    labels: Tensor  # [pick]
    weight: float  # sum of losses times it = estimate of the mean over all training nodes
    rows: Tensor  # global ids: field.n_id first, then what only the penalty reads
    sample: PenaltySample | None

    def to(self, device: torch.device) -> "NodeBatch":
        if device.type == "cpu":
            return self
        layers = {id(layer): layer.to(device) for layer in self.field.layers}  # they may be one and the same
        field = Field(self.field.n_id.to(device), tuple(layers[id(layer)] for layer in self.field.layers))
        moved = {name: getattr(self, name).to(device) for name in ("x", "pick", "labels", "rows")}
        sample = None if self.sample is None else self.sample.to(device)
        return replace(self, field=field, sample=sample, **moved)


def batch_count(config: BatchConfig, nodes: int, targets: int) -> int:
    """Batches per epoch: as many as the size asks for, in whole steps."""
    wanted = -(-(nodes if config.kind == "clusters" else targets) // config.nodes)
    return max(1, -(-wanted // config.per_step)) * config.per_step


def assign_clusters(graph: Graph, train: Tensor, config: BatchConfig, seed: int) -> Array:
    """The cluster of each node, for `BatchPlan`: enough of them to join `config.joined` in every batch."""
    count = batch_count(config, graph.num_nodes, len(train))
    return clusters(graph, 1 if count == 1 else min(count * config.joined, graph.num_nodes), seed)


class BatchPlan:
    """A graph cut for training: what all epochs share.

    Args:
        hops: layers of the network, each of which reads one hop further.
        normalise: divide features by their row sum.
        penalise: whether the intervention has a penalty to estimate.
        assigned: the cluster of each node where it is known already.
    """

    def __init__(
        self,
        graph: Graph,
        train: Tensor,
        config: BatchConfig,
        *,
        seed: int,
        hops: int,
        normalise: bool = False,
        penalise: bool = True,
        assigned: Array | None = None,
    ) -> None:
        self.graph, self.config, self.seed, self.hops = graph, config, seed, hops
        self.normalise, self.penalise = normalise, penalise
        self.train = np.sort(train.numpy())
        self.is_train = np.zeros(graph.num_nodes, dtype=bool)
        self.is_train[self.train] = True
        self.places = Places(graph.num_nodes)
        self.count = batch_count(config, graph.num_nodes, len(train))
        self.members: Sequence[Array] = []  # nodes of each cluster; none for neighbourhood batches
        if config.kind == "clusters":
            assigned = assign_clusters(graph, train, config, seed) if assigned is None else assigned
            self.members = np.split(
                np.argsort(assigned, kind="stable"), np.cumsum(np.bincount(assigned))[:-1]
            )
            enough = len(self.members) // 2 // config.per_step * config.per_step
            self.count = min(self.count, enough) or config.per_step
            if self.count > 1 and len(self.members) < 2 * self.count:
                raise InputError(
                    f"batch.per_step={config.per_step}: only {len(self.members)} clusters for {self.count} "
                    "batches, which need two each; take fewer batches per step"
                )
        elif len(train) < self.count:
            raise InputError(
                f"{len(train)} training nodes are too few for {self.count} batches; lower batches per step"
            )

    def epoch(self, epoch: int) -> "EpochBatches":
        return EpochBatches(self, epoch)


class EpochBatches(Dataset[NodeBatch]):
    """The batches of one epoch, made when asked for. Which nodes are where is drawn from (seed, epoch)."""

    def __init__(self, plan: BatchPlan, epoch: int) -> None:
        self.plan, self.number = plan, epoch
        rng = np.random.default_rng([plan.seed, epoch])
        self.parts = np.array_split(rng.permutation(len(plan.members) or plan.train), plan.count)
        self.penalised: list[Array] = []  # nodes whose pairs estimate the penalty
        if plan.penalise and not plan.members:
            self.penalised = np.array_split(rng.permutation(plan.graph.num_nodes), plan.count)

    def __len__(self) -> int:
        return self.plan.count

    def loader(self, numbers: Iterable[int], workers: int = 0) -> DataLoader[NodeBatch]:
        """The batches with these numbers, in this order, whatever the number of worker processes."""
        return DataLoader(self, batch_size=None, sampler=list(numbers), num_workers=workers)

    def __getitem__(self, k: int) -> NodeBatch:
        plan, graph, part = self.plan, self.plan.graph, self.parts[k]
        rng = np.random.default_rng([plan.seed, self.number, k, 1])
        sample, groups = None, None
        with plan.places as places:
            if plan.members:  # clusters with all edges among them
                members = [plan.members[cluster] for cluster in part]
                nodes, groups = np.concatenate(members), tuple(map(len, members))
                field = induced(graph, nodes, plan.hops, places)
                pick = np.flatnonzero(plan.is_train[nodes])
                targets, weight = nodes[pick], len(plan.members) / len(members) / len(plan.train)
            else:  # training nodes with some of their neighbours
                field = neighbourhood(graph, part, plan.config.fanout_of(plan.hops), rng, places)
                pick, targets, weight = np.arange(len(part)), part, 1.0 / len(part)
            if plan.penalise:
                penalised = nodes if plan.members else self.penalised[k][: plan.config.penalty_nodes]
                sample = self._sample(penalised, groups, rng, places)
            rows = torch.from_numpy(places.ids)
        x = graph.features(field.n_id.numpy())
        x = row_normalise(x) if plan.normalise else x
        graph.release()
        labels = graph.y[torch.from_numpy(targets)]
        return NodeBatch(k, x, field, torch.from_numpy(pick), labels, weight, rows, sample)

    def _sample(
        self, nodes: Array, groups: tuple[int, ...] | None, rng: np.random.Generator, places: Places
    ) -> PenaltySample:
        """Numbers the nodes and the drawn neighbours that have no number yet."""
        plan, graph = self.plan, self.plan.graph
        drawn = draw(graph, nodes, plan.config.penalty_neighbours, rng)
        places.add(nodes)
        places.add(drawn.col)
        col = torch.from_numpy(places.of(drawn.col))
        adj = Adjacency(torch.from_numpy(drawn.rowptr), col, torch.arange(len(col)), len(places.ids))
        own, degree = torch.from_numpy(places.of(nodes)), torch.from_numpy(drawn.degree)
        total = graph.num_nodes if groups is None else len(plan.members)
        return PenaltySample(own, adj, degree, groups, total, graph.num_edges)
