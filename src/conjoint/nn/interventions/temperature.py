"""How sharply attention follows a similarity that has no scale of its own."""

import math

import torch
from torch import Tensor, nn

from ...errors import InputError


class Temperature(nn.Module):
    """A positive factor of scores, fixed or learnt.

    Args:
        start: its value, before training if it is learnt; 0 would ignore the scores.
        learn: let training move it.
    """

    def __init__(self, start: float = 8.0, learn: bool = False) -> None:
        super().__init__()
        if not (start > 0.0 and math.isfinite(start)):
            raise InputError(f"temperature: {start}; choose a number above 0, for example 8")
        self.start = float(start)
        self.log = nn.Parameter(torch.empty(())) if learn else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.log is not None:
            nn.init.constant_(self.log, math.log(self.start))

    def forward(self, scores: Tensor) -> Tensor:
        return scores * (self.start if self.log is None else self.log.exp())

    def extra_repr(self) -> str:
        return f"{self.start}, learn={self.log is not None}"
