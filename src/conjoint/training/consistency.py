"""Consistency on unlabelled nodes: predictions under different dropout should agree.

After GRAND, "Graph Random Neural Networks for Semi-Supervised Learning on Graphs" (Feng et al., 2020).
S stochastic passes give each node S distributions. Their mean, sharpened, is the target of all of them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field
from ..graph.sparse import csr_tensor
from ..nn.model import Perturb

DISTANCES = ("squared", "kl")


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """Settings of the consistency term; `passes` = 1 with `weight` = 0 would be plain training.

    Args:
        passes: S, stochastic passes per step.
        weight: of the consistency term once the ramp is over.
        temperature: of the sharpening; 1 leaves the mean as it is, towards 0 it becomes one-hot.
        distance: "squared" (GRAND's) or "kl" (target against prediction).
        ramp: epochs over which the weight climbs linearly from 0.
        threshold: only nodes whose sharpened target is at least this sure take part; 0 = all.
        sample: so many nodes per step beside the labelled ones, drawn anew each epoch; 0 = all nodes.
        drop_node: share of nodes whose features are hidden in a pass (GRAND's DropNode).
        drop_edge: share of edges that are not heard in a pass; self-loops always are.
    """

    passes: int = 4
    weight: float = 1.0
    temperature: float = 0.5
    distance: str = "squared"
    ramp: int = 0
    threshold: float = 0.0
    sample: int = 0
    drop_node: float = 0.0
    drop_edge: float = 0.0

    def __post_init__(self) -> None:
        whole = {"passes": (self.passes, 1), "ramp": (self.ramp, 0), "sample": (self.sample, 0)}
        for name, (value, least) in whole.items():
            if not isinstance(value, int) or value < least:
                raise InputError(f"consistency.{name}={value!r}: give a whole number, {least} or more")
        if not self.weight >= 0.0:
            raise InputError(f"consistency.weight={self.weight!r}: give a number, 0 or more")
        if not 0.0 < self.temperature <= 1.0:
            raise InputError(f"consistency.temperature={self.temperature!r}: choose above 0, at most 1")
        for name in ("threshold", "drop_node", "drop_edge"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(f"consistency.{name}={getattr(self, name)!r}: choose from 0 to below 1")
        if self.distance not in DISTANCES:
            raise InputError(f"consistency.distance={self.distance!r}: choose one of {', '.join(DISTANCES)}")

    def weight_at(self, epoch: int) -> float:
        return self.weight * min(1.0, epoch / self.ramp) if self.ramp else self.weight


def sharpen(mean: Tensor, temperature: float) -> Tensor:
    """p_c^(1/T) / sum_c p_c^(1/T), through logarithms. [nodes, classes]"""
    return (mean.clamp(min=1e-30).log() / temperature).softmax(dim=-1)


def disagreement(logits: Tensor, settings: Consistency) -> Tensor:
    """Mean distance of each pass from the sharpened mean. [passes, nodes, classes] -> scalar

    The target is a constant: no gradient flows through the mean.
    """
    log_p = logits.log_softmax(dim=-1)
    target = sharpen(log_p.detach().exp().mean(dim=0), settings.temperature)  # [nodes, classes]
    if settings.distance == "squared":
        distance = (log_p.exp() - target).square().sum(dim=-1)  # [passes, nodes]
    else:
        distance = (target * (target.clamp(min=1e-30).log() - log_p)).sum(dim=-1)
    sure = (target.amax(dim=-1) >= settings.threshold).to(distance.dtype)  # [nodes]
    return (distance.mean(dim=0) * sure).sum() / sure.sum().clamp(min=1.0)


def perturbation(settings: Consistency) -> Perturb | None:
    """What happens to features and graph before each pass; None if only the model's own dropout does."""
    if settings.drop_node == 0.0 and settings.drop_edge == 0.0:
        return None

    def perturb(x: Tensor, graph: Any) -> tuple[Tensor, Any]:
        x = drop_nodes(x, settings.drop_node) if settings.drop_node else x
        return x, drop_edges(graph, settings.drop_edge) if settings.drop_edge else graph

    return perturb


def drop_nodes(x: Tensor, share: float) -> Tensor:
    """Hide whole rows, and scale the others so that the expectation stays. [nodes, features]"""
    keep = (torch.rand(x.size(0), device=x.device) >= share).to(x.dtype) / (1.0 - share)
    if x.layout != torch.sparse_csr:
        return x * keep.unsqueeze(1)
    crow = x.crow_indices()
    values = x.values() * keep.repeat_interleave(crow.diff())
    return csr_tensor(crow, x.col_indices(), values, (x.size(0), x.size(1)))


def drop_edges(graph: Any, share: float) -> Any:
    """Leave edges unheard in all layers of a pass; a node always hears itself."""
    if not isinstance(graph, Adjacency | Field):
        raise InputError("consistency.drop_edge: only attention models can leave edges out; set it to 0")
    widest = graph.layers[0] if isinstance(graph, Field) else graph
    dropped = torch.rand(widest.num_entries, device=widest.col.device) < share
    dropped &= widest.row != widest.col
    if isinstance(graph, Adjacency):
        return graph.without(dropped)
    return Field(graph.n_id, tuple(layer.without(dropped[: layer.num_entries]) for layer in graph.layers))
