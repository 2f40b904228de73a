"""Consistency on unlabelled nodes: predictions under different dropout should agree.

After GRAND, "Graph Random Neural Networks for Semi-Supervised Learning on Graphs" (Feng et al., 2020).
S stochastic passes give each node S distributions. Their mean, sharpened, is the target of all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import InputError

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
        sample: unlabelled nodes per step, drawn anew each epoch; 0 = all nodes.
    """

    passes: int = 4
    weight: float = 1.0
    temperature: float = 0.5
    distance: str = "squared"
    ramp: int = 0
    threshold: float = 0.0
    sample: int = 0

    def __post_init__(self) -> None:
        whole = {"passes": (self.passes, 1), "ramp": (self.ramp, 0), "sample": (self.sample, 0)}
        for name, (value, least) in whole.items():
            if not isinstance(value, int) or value < least:
                raise InputError(f"consistency.{name}={value!r}: give a whole number, {least} or more")
        if not self.weight >= 0.0:
            raise InputError(f"consistency.weight={self.weight!r}: give a number, 0 or more")
        if not 0.0 < self.temperature <= 1.0:
            raise InputError(f"consistency.temperature={self.temperature!r}: choose above 0, at most 1")
        if not 0.0 <= self.threshold < 1.0:
            raise InputError(f"consistency.threshold={self.threshold!r}: choose from 0 to below 1")
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


def sample_nodes(num_nodes: int, count: int, device: torch.device) -> Tensor:
    """`count` different nodes from torch's generator, which training seeds per epoch. [count]"""
    return torch.randperm(num_nodes, device=device)[:count]
