"""What a model says of one node when edges or features are taken away, on the part of the graph around it.

Many copies of the part, each without something, stand side by side as one graph, so that a question costs one
forward pass. What belongs to the whole graph stays as it is there: scores of interventions, and what
describes a node's place (`role_features`). So a removed edge carries nothing and takes no share of attention,
but nobody's score changes with it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..graph.adjacency import Adjacency
from ..graph.field import entries_of
from ..graph.graph import Graph
from ..graph.roles import role_features
from ..graph.sparse import csr_tensor, is_sparse, rows
from ..nn.ensemble import Ensemble
from ..nn.interventions import Intervention
from ..nn.model import NodeModel, ScoredModel
from ..nn.simple import BoostedTrees, LabelPropagation
from ..training.config import TrainConfig
from ..training.steps import whole_graph

LEAST_HOPS = 2  # that a part has, also where it is large
USUAL_NODES, MOST_NODES = 400, 3000  # a part grows hop by hop to the first, and is cut at the second
MOST_ROWS = 20_000  # of all copies in one forward pass


@dataclass(frozen=True, eq=False)
class Part:
    """The nodes around one, ring by ring, and the entries among them in the order of their targets."""

    n_id: Tensor  # [nodes] of the whole graph; the first is the node itself
    row: Tensor  # [entries] target, a place in n_id
    col: Tensor  # [entries] source
    place: Tensor  # [entries] among those of the whole graph
    hops: int
    reaches_all: bool  # nothing of its component lies outside
    sampled: bool  # a ring was too large: some of its nodes stand for it

    @property
    def size(self) -> int:
        return self.n_id.numel()


def part_around(whole: Adjacency, node: int, most: int | None = None, seed: int = 0) -> Part:
    """As many hops as fit into `USUAL_NODES`, two at least; rings that go beyond `most` are sampled."""
    most = most or MOST_NODES
    n_id = frontier = torch.tensor([node])
    local = torch.full((whole.num_src,), -1)
    local[node] = 0
    hops, sampled, ring = 0, False, frontier
    while True:
        ring = whole.col[entries_of(whole, frontier)].unique()
        ring = ring[local[ring] < 0]
        total = n_id.numel() + ring.numel()
        if ring.numel() == 0 or (hops >= LEAST_HOPS and total > USUAL_NODES):
            break
        if total > most:
            sampled, room = True, most - n_id.numel()
            ring = torch.from_numpy(np.sort(np.random.default_rng(seed).choice(ring.numpy(), room, False)))
        local[ring] = torch.arange(n_id.numel(), n_id.numel() + ring.numel())
        n_id, frontier, hops = torch.cat([n_id, ring]), ring, hops + 1
        if sampled:
            break
    place = entries_of(whole, n_id)
    row = torch.arange(n_id.numel()).repeat_interleave(whole.degree[n_id])
    col = local[whole.col[place]]
    inside = col >= 0
    return Part(n_id, row[inside], col[inside], place[inside], hops, ring.numel() == 0, sampled)


@dataclass(frozen=True, eq=False)
class Removal:
    """What one copy lacks: edges between nodes of the part, and features of the node itself."""

    edges: tuple[tuple[int, int], ...] = ()  # pairs of places in the part; both directions go
    columns: tuple[int, ...] = field(default=(), repr=False)


class Held(Intervention):
    """Scores that were computed before, for the entries that come in."""

    def __init__(self, scores: Tensor, like: Intervention) -> None:
        super().__init__()
        self.scores, self.count = scores, like.count

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        return self.scores


class Occlusion:
    """A model around one node of its graph: its members' probabilities, as often as something is removed."""

    def __init__(
        self, model: NodeModel, graph: Graph, config: TrainConfig, node: int, most: int | None = None
    ) -> None:
        self.model, self.graph = model, graph
        batch = whole_graph(model, graph, config)
        self.device = batch.labels.device
        self.whole = graph.adjacency
        self.part = part_around(self.whole, node, most)
        self.x = rows(batch.x, self.part.n_id.to(self.device))
        self.blank = _usual_row(graph, batch.x)  # stands for features that are removed
        self.members: list[tuple[str, float, NodeModel]] = [("", 1.0, model)]
        self.temperature = 1.0
        if isinstance(model, Ensemble):
            self.members = [(info.name, info.weight, one) for info, one in model.each()]
            self.temperature = model.temperature
        self.names = list(dict.fromkeys(name for name, _, _ in self.members))
        each = [[weight for name, weight, _ in self.members if name == one] for one in self.names]
        self.weights = torch.tensor([sum(weights) for weights in each])
        self.roles = None
        if any(isinstance(one, BoostedTrees) or getattr(one, "place", None) for _, _, one in self.members):
            whole = self.whole
            made = whole.once(role_features, lambda: role_features(whole.edge_index, whole.num_src))
            self.roles = made[self.part.n_id]
        self.scores = [self._scores(k, batch.x) for k in range(len(self.members))]

    def reads(self, k: int, x: Tensor) -> Tensor:
        """The features as member k reads them."""
        return self.model.reads(self.model.infos[k], x) if isinstance(self.model, Ensemble) else x

    @torch.no_grad()
    def _scores(self, k: int, x: Tensor) -> Tensor | None:
        """The member's scores of the part's entries."""
        member, part = self.members[k][2], self.part
        if not isinstance(member, ScoredModel) or member.intervention is None:
            return None
        if not member.intervention.serves_parts:
            return member.intervention(self.whole.to(self.device), self.reads(k, x))[part.place]
        adj, n_id = self.adjacency([Removal()])[0].to(self.device), part.n_id.to(self.device)
        return member.intervention(adj, self.reads(k, self.x), n_id)

    def adjacency(self, removals: Sequence[Removal]) -> tuple[Adjacency, Tensor]:
        """One copy of the part for each removal, side by side; and which entry of the part each entry is."""
        part, kept = self.part, []
        for removal in removals:
            keep = torch.ones(part.row.numel(), dtype=torch.bool)
            for a, b in removal.edges:
                keep &= ~(((part.row == a) & (part.col == b)) | ((part.row == b) & (part.col == a)))
            kept.append(keep.nonzero().squeeze(1))
        copy = torch.arange(len(kept)).repeat_interleave(torch.tensor([len(one) for one in kept]))
        entry = torch.cat(kept)
        row, col = part.row[entry] + copy * part.size, part.col[entry] + copy * part.size
        count = torch.bincount(row, minlength=len(kept) * part.size)
        rowptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
        weight = None if self.whole.log_weight is None else self.whole.log_weight[part.place[entry]]
        made = Adjacency(rowptr, col, torch.arange(len(col)), len(kept) * part.size, log_weight=weight)
        if self.roles is not None:
            made.once(role_features, lambda: self.roles.repeat(len(kept), 1))  # type: ignore[union-attr]
        return made, entry

    def features(self, removals: Sequence[Removal]) -> Tensor:
        """The features of all copies, one below the other. [copies * nodes, features]"""
        size = self.part.size
        x = rows(self.x, torch.arange(size, device=self.device).repeat(len(removals)))
        values = x.values().clone() if is_sparse(x) else x
        for k, removal in enumerate(removals):
            if not removal.columns:
                continue
            gone = torch.tensor(removal.columns, device=self.device)
            if is_sparse(x):
                start, end = x.crow_indices()[k * size : k * size + 2].tolist()
                values[start:end].masked_fill_(torch.isin(x.col_indices()[start:end], gone), 0.0)
            else:
                values[k * size, gone] = self.blank[gone]
        if not is_sparse(x):
            return values
        return csr_tensor(x.crow_indices(), x.col_indices(), values, (x.size(0), x.size(1)), checked=False)

    @torch.no_grad()
    def ask(self, removals: Sequence[Removal]) -> Tensor:
        """Each member's probabilities for the node, without what each removal names. [copies, members, k]"""
        at_once = max(1, MOST_ROWS // self.part.size)
        pieces = [removals[start : start + at_once] for start in range(0, len(removals), at_once)]
        return torch.cat([self._ask(piece) for piece in pieces])

    def _ask(self, removals: Sequence[Removal]) -> Tensor:
        adj, entry = self.adjacency(removals)
        x, found = self.features(removals), dict[str, Tensor]()
        with self.on_copies(entry, len(removals)):
            for k, (name, weight, member) in enumerate(self.members):
                firsts = slice(None, None, self.part.size)
                out = member.probabilities(self.reads(k, x), self.form(member, adj), firsts)
                found[name] = found.get(name, 0.0) + weight * out
        return torch.stack([found[name] for name in self.names], dim=1).cpu() / self.weights[:, None]

    def form(self, member: NodeModel, adj: Adjacency) -> Any:
        """The copies as this member works on them."""
        if member.form is Adjacency:
            return adj.to(self.device) if self.device.type != "cpu" else adj
        edges = adj.row != adj.col
        pairs = torch.stack([adj.col[edges], adj.row[edges]]).to(self.device)
        weight = None if adj.log_weight is None else adj.log_weight[edges].exp().to(self.device)
        return member.prepare(pairs, adj.num_src, weight)

    @contextmanager
    def on_copies(self, entry: Tensor, copies: int) -> Iterator[None]:
        """What members hold for each entry or node of the whole graph, cut to the copies while inside."""
        with ExitStack() as back:
            for (_, _, member), scores in zip(self.members, self.scores, strict=True):
                if scores is not None and isinstance(member, ScoredModel):
                    assert member.intervention is not None
                    back.callback(setattr, member, "intervention", member.intervention)
                    member.intervention = Held(scores[entry], member.intervention)
                if isinstance(member, LabelPropagation) or (
                    isinstance(member, BoostedTrees) and member.reads_labels
                ):
                    back.callback(setattr, member, "labels", member.labels)
                    member.labels = member.labels[self.part.n_id.to(self.device)].repeat(copies)
            yield

    def joined(self, members: Tensor, weights: Tensor | None = None) -> Tensor:
        """The whole model's probabilities from its members'. [copies, members, k] -> [copies, k]"""
        weights = self.weights if weights is None else weights
        if not isinstance(self.model, Ensemble):
            return members[:, 0]
        mean = (weights[:, None] * members).sum(dim=1)
        return (mean.clamp(min=1e-12).log() / self.temperature).softmax(dim=1)


def _usual_row(graph: Graph, x: Tensor) -> Tensor:
    """What stands in for removed features: the mean of a dense column; nothing where features are sparse."""
    if is_sparse(x):
        return x.values().new_zeros(x.size(1))
    return graph.once(("mean row", id(x)), lambda: (x, x.mean(dim=0)))[1]  # x keeps its id its own
