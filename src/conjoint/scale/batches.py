"""Batches of a stored graph: the k-th one of an epoch follows from (seed, epoch, k) alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field
from ..graph.sparse import row_normalise
from ..store import StoredGraph
from .clusters import clusters
from .config import BatchConfig
from .penalty import PenaltySample
from .sampling import Places, draw, induced, neighbourhood

Array = npt.NDArray[Any]


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


@dataclass(frozen=True, eq=False)
class Plan:
    """A graph cut for training: what all epochs share."""

    graph: StoredGraph
    train: Array  # training nodes
    trains: Array  # [nodes] bool: whether it is one of them
    config: BatchConfig
    seed: int
    hops: int
    count: int  # batches per epoch
    normalise: bool
    penalise: bool
    members: Sequence[Array]  # nodes of each cluster; empty for neighbourhood batches
    places: Places

    def epoch(self, epoch: int) -> "EpochBatches":
        return EpochBatches(self, epoch)


def batch_count(config: BatchConfig, nodes: int, targets: int) -> int:
    """Batches per epoch: as many as the size asks for, in whole steps."""
    wanted = -(-(nodes if config.kind == "clusters" else targets) // config.nodes)
    return max(1, -(-wanted // config.per_step)) * config.per_step


def plan_batches(
    graph: StoredGraph,
    train: Tensor,
    config: BatchConfig,
    *,
    seed: int,
    hops: int,
    normalise: bool = False,
    penalise: bool = True,
    assigned: Array | None = None,
) -> Plan:
    """Cut the graph. `assigned` is the cluster of each node where it is known already."""
    nodes = np.sort(train.numpy())
    count = batch_count(config, graph.num_nodes, len(nodes))
    members: list[Array] = []
    if config.kind == "clusters":
        if assigned is None:
            assigned = clusters(graph, cluster_count(config, graph.num_nodes, len(nodes)), seed)
        order = np.argsort(assigned, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(assigned))[:-1])
        count = min(count, len(members) // 2 // config.per_step * config.per_step) or config.per_step
        if count > 1 and len(members) < 2 * count:
            raise InputError(
                f"batch.per_step={config.per_step}: only {len(members)} clusters for {count} batches, which "
                "need two each; take fewer batches per step"
            )
    elif len(nodes) < count:
        raise InputError(
            f"{len(nodes)} training nodes are too few for {count} batches; lower batches per step"
        )
    trains = np.zeros(graph.num_nodes, dtype=bool)
    trains[nodes] = True
    places = Places(graph.num_nodes)
    return Plan(graph, nodes, trains, config, seed, hops, count, normalise, penalise, members, places)


def cluster_count(config: BatchConfig, nodes: int, targets: int) -> int:
    count = batch_count(config, nodes, targets)
    return 1 if count == 1 else min(count * config.joined, nodes)


class EpochBatches(Dataset[NodeBatch]):
    """The batches of one epoch, made when asked for. Which nodes are where is drawn from (seed, epoch)."""

    def __init__(self, plan: Plan, epoch: int) -> None:
        self.plan, self.number = plan, epoch
        rng = np.random.default_rng([plan.seed, epoch])
        clustered = plan.config.kind == "clusters"
        spread = rng.permutation(len(plan.members) if clustered else plan.train)
        self.parts = np.array_split(spread, plan.count)
        self.judged: list[Array] = []  # nodes whose pairs estimate the penalty
        if plan.penalise and not clustered:
            self.judged = np.array_split(rng.permutation(plan.graph.num_nodes), plan.count)

    def __len__(self) -> int:
        return self.plan.count

    def __getitem__(self, k: int) -> NodeBatch:
        plan, config = self.plan, self.plan.config
        rng = np.random.default_rng([plan.seed, self.number, k, 1])
        with plan.places as places:
            if config.kind == "clusters":
                made = self._clusters(k, rng, places)
            else:
                made = self._neighbours(k, rng, places)
        plan.graph.release()
        return made

    def loader(self, numbers: Iterable[int], workers: int = 0) -> DataLoader[NodeBatch]:
        """The batches with these numbers, in this order, whatever the number of worker processes."""
        return DataLoader(self, batch_size=None, sampler=list(numbers), num_workers=workers)

    def _clusters(self, k: int, rng: np.random.Generator, places: Places) -> NodeBatch:
        plan = self.plan
        members = [plan.members[c] for c in self.parts[k]]
        nodes = np.concatenate(members)
        field = induced(plan.graph, nodes, plan.hops, places)
        wanted = plan.trains[nodes]
        groups = tuple(len(part) for part in members)
        sample = self._sample(nodes, groups, len(plan.members), rng, places) if plan.penalise else None
        weight = len(plan.members) / len(members) / len(plan.train)
        return self._batch(k, field, np.flatnonzero(wanted), nodes[wanted], weight, places, sample)

    def _neighbours(self, k: int, rng: np.random.Generator, places: Places) -> NodeBatch:
        plan, config = self.plan, self.plan.config
        targets = self.parts[k]
        field = neighbourhood(plan.graph, targets, config.fanout_of(plan.hops), rng, places)
        sample = None
        if plan.penalise:
            judged = self.judged[k][: max(2, config.penalty_nodes)]
            sample = self._sample(judged, None, plan.graph.num_nodes, rng, places)
        pick = np.arange(len(targets))
        return self._batch(k, field, pick, targets, 1.0 / len(targets), places, sample)

    def _sample(
        self,
        nodes: Array,
        groups: tuple[int, ...] | None,
        total: int,
        rng: np.random.Generator,
        places: Places,
    ) -> PenaltySample:
        """Numbers the nodes and the drawn neighbours that have no number yet."""
        graph = self.plan.graph
        drawn = draw(graph, nodes, self.plan.config.penalty_neighbours, rng)
        places.add(nodes)
        places.add(drawn.col)
        adj = Adjacency(
            torch.from_numpy(drawn.rowptr),
            torch.from_numpy(places.of(drawn.col)),
            torch.arange(len(drawn.col)),
            len(places.ids),
        )
        own, degree = torch.from_numpy(places.of(nodes)), torch.from_numpy(drawn.degree)
        return PenaltySample(own, adj, degree, groups, total, graph.num_entries)

    def _batch(
        self,
        k: int,
        field: Field,
        pick: Array,
        targets: Array,
        weight: float,
        places: Places,
        sample: PenaltySample | None,
    ) -> NodeBatch:
        plan = self.plan
        x = plan.graph.features(field.n_id.numpy())
        x = row_normalise(x) if plan.normalise else x
        labels = plan.graph.y[torch.from_numpy(targets)]
        return NodeBatch(
            k, x, field, torch.from_numpy(pick), labels, weight, torch.from_numpy(places.ids), sample
        )
