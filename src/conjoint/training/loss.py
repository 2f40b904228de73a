"""What training minimises: the paper's loss, and consistency on unlabelled nodes.

Consistency after GRAND, "Graph Random Neural Networks for Semi-Supervised Learning on Graphs" (Feng et al.,
2020): predictions under different dropout should agree. S stochastic passes give each node S distributions.
Their mean, sharpened, is the target of all of them.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function

from ..errors import Diverged, InputError, argument
from ..graph.adjacency import Adjacency
from ..graph.field import Field
from ..graph.graph import Graph
from ..graph.sparse import csr_tensor
from ..kernels import memory
from ..kernels.gradient import once_differentiable
from ..nn.model import Perturb
from .config import BALANCED, Consistency, TrainConfig


class Loss(NamedTuple):
    total: Tensor
    prediction: Tensor
    penalty: Tensor
    disagreement: Tensor


def objective(
    logits: Tensor,  # [passes, rows, classes]
    labels: Tensor,  # [targets]
    pick: Tensor | None,  # the rows of the targets; None: rows are targets
    penalty: Tensor,
    config: TrainConfig,
    epoch: int,
    weight: Tensor | None = None,  # [targets]
) -> Loss:
    """L_predict + lambda L_ext, plus the weighted consistency term if there is one.

    L_predict is cross-entropy, averaged over the passes.
    """
    targets, passes = logits if pick is None else logits[:, pick], logits.size(0)
    each = None if weight is None else weight.repeat(passes)
    prediction = cross_entropy(targets.flatten(0, 1), labels.repeat(passes), each)
    total = prediction + config.penalty_weight * penalty
    if config.consistency is None:
        return Loss(total, prediction, penalty, penalty.new_zeros(()))
    apart = disagreement(logits, config.consistency)
    return Loss(total + config.consistency.weight_at(epoch) * apart, prediction, penalty, apart)


def cross_entropy(logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
    """sum_i w_i (-log p_i) / sum_i w_i, the plain mean without weights. [nodes, classes], [nodes], [nodes]"""
    if weight is None:
        return F.cross_entropy(logits, labels)
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (weight * losses).sum() / weight.sum().clamp(min=1e-12)


def class_factors(
    graph: Graph, train: Tensor, class_weight: str | Mapping[str, float] | None
) -> Tensor | None:
    """The weight of each class, see `TrainConfig.class_weight`. [classes]; a class without labels has 1."""
    if class_weight is None:
        return None
    if class_weight == BALANCED:
        count = torch.bincount(graph.y[train], minlength=graph.num_classes).double()
        return torch.where(count > 0, len(train) / ((count > 0).sum() * count.clamp(min=1)), 1.0)
    assert isinstance(class_weight, Mapping)
    names = graph.class_names or [str(k) for k in range(graph.num_classes)]
    for name in class_weight:
        if name not in names:
            some = ", ".join(names[:8])
            raise InputError(f"{argument('class_weight', name)}: no class is called so; there are {some}")
    return torch.tensor([float(class_weight.get(name, 1.0)) for name in names], dtype=torch.float64)


def label_weights(graph: Graph, train: Tensor, config: TrainConfig) -> Tensor | None:
    """How much each node's label counts, by its class and by itself; 1 on average over the training nodes.

    None: all alike. [nodes], of which only those with a label mean anything.
    """
    factors, own = class_factors(graph, train, config.class_weight), graph.label_weight
    if factors is None and own is None:
        return None
    weight = torch.ones(graph.num_nodes, dtype=torch.float64) if own is None else own.double()
    if factors is not None:
        weight = weight * factors[graph.y.cpu().clamp(min=0)]
    mean = weight[train].mean()
    if not mean > 0:
        raise InputError("label_weight: no training node has a weight above 0; give some")
    return (weight / mean).float()


def must_be_finite(value: float, what: str, epoch: int, config: TrainConfig) -> None:
    if not math.isfinite(value):
        clip = "" if config.clip is not None else " or set clip=1.0"
        raise Diverged(
            f"the {what} is {value} at epoch {epoch} with lr={config.lr}; try lr={config.lr / 10:g}{clip}"
        )


def sharpen(mean: Tensor, temperature: float) -> Tensor:
    """p_c^(1/T) / sum_c p_c^(1/T), through logarithms. [nodes, classes]"""
    return (mean.clamp(min=1e-30).log() / temperature).softmax(dim=-1)


def disagreement(logits: Tensor, settings: Consistency) -> Tensor:
    """Mean distance of each pass from the sharpened mean. [passes, nodes, classes] -> scalar

    The target is a constant: no gradient flows through the mean.
    """
    log_p = logits.log_softmax(dim=-1)
    p = memory.empty_like(log_p)
    torch.exp(log_p.detach(), out=p)
    target = sharpen(p.mean(dim=0), settings.temperature)  # [nodes, classes]
    if settings.distance == "squared":
        distance = _Squared.apply(log_p, p, target)  # [passes, nodes]
    else:
        distance = (target * (target.clamp(min=1e-30).log() - log_p)).sum(dim=-1)
    sure = (target.amax(dim=-1) >= settings.threshold).to(distance.dtype)  # [nodes]
    return (distance.mean(dim=0) * sure).sum() / sure.sum().clamp(min=1.0)


class _Squared(Function):
    """sum_c (p_c - t_c)^2, where p = exp(log_p) is at hand. [passes, nodes, classes] -> [passes, nodes]

    The bits of torch's own gradient, with one buffer in place of one for every operation.
    """

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, p: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(p, target)
        return torch.sub(p, target, out=memory.empty_like(p)).square_().sum(dim=-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        p, target = ctx.saved_tensors
        twice = torch.sub(p, target, out=memory.empty_like(p)).mul_(2.0)
        return twice.mul_(grad.unsqueeze(-1)).mul_(p), None, None


def perturbation(settings: Consistency | None) -> Perturb | None:
    """What happens to features and graph before each pass; None if only the model's own dropout does."""
    if settings is None or settings.drop_node == settings.drop_edge == 0.0:
        return None

    def perturb(x: Tensor, graph: Any) -> tuple[Tensor, Any]:
        x = drop_nodes(x, settings.drop_node) if settings.drop_node else x
        return x, drop_edges(graph, settings.drop_edge) if settings.drop_edge else graph

    return perturb


def drop_nodes(x: Tensor, share: float) -> Tensor:
    """Drop whole rows, and scale the others so that the expectation stays. [nodes, features]"""
    keep = (torch.rand(x.size(0), device=x.device) >= share).to(x.dtype) / (1.0 - share)
    if x.layout != torch.sparse_csr:
        return x * keep.unsqueeze(1)
    crow = x.crow_indices()
    values = x.values() * keep.repeat_interleave(crow.diff())
    return csr_tensor(crow, x.col_indices(), values, (x.size(0), x.size(1)))


def drop_edges(graph: Any, share: float) -> Any:
    """The same edges dropped in all layers of a pass; self-loops stay."""
    if not isinstance(graph, Adjacency | Field):
        raise InputError("consistency.drop_edge: only attention models can leave edges out; set it to 0")
    widest = graph.layers[0] if isinstance(graph, Field) else graph
    dropped = torch.rand(widest.num_entries, device=widest.col.device) < share
    dropped &= widest.row != widest.col
    if isinstance(graph, Adjacency):
        return graph.without(dropped)
    return Field(graph.n_id, tuple(layer.without(dropped[: layer.num_entries]) for layer in graph.layers))
