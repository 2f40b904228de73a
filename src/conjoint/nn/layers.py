"""Parts that networks are made of: linear maps of dense or sparse rows, with dropout, and norms."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graph.sparse import is_sparse
from ..kernels.gradient import once_differentiable
from ..kernels.memory import empty_like
from ..recording import direct
from . import checks, ops


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """Sparse rows with a dropout that is applied while they are read: the mask is a function of the seed."""

    x: Tensor
    dropout: float
    seed: Tensor


Rows = Tensor | DroppedRows


def draw_dropout(module: nn.Module, share: float, like: Tensor) -> tuple[float, Tensor | None]:
    """Share and seed of a dropout; no seed outside of training."""
    return (share, ops.draw_seed(like.device)) if module.training and share > 0.0 else (0.0, None)


def dropped(module: nn.Module, x: Rows, share: float) -> Rows:
    """x after dropout, in training; dropout on dropout is allowed."""
    if not module.training or share <= 0.0:
        return x
    if isinstance(x, DroppedRows):
        x = ops.drop(x.x, x.dropout, x.seed)
    seed = ops.draw_seed(x.device)
    return DroppedRows(x, share, seed) if is_sparse(x) else ops.drop(x, share, seed)


def project(x: Rows, weight: Tensor) -> Tensor:
    """x W^T for dense or sparse CSR x. [nodes, in], [out, in] -> [nodes, out]"""
    if isinstance(x, DroppedRows):
        return ops.project(x.x, weight, x.dropout, x.seed)
    return ops.project(x, weight)


def glorot(weight: Tensor) -> None:
    bound = math.sqrt(6.0 / (weight.size(-2) + weight.size(-1)))
    nn.init.uniform_(weight, -bound, bound)


class Linear(nn.Module):
    """PyG's `Linear` of a known size: its names, its initial weights, without importing PyG."""

    def __init__(
        self, in_channels: int, out_channels: int, bias: bool = True, weight_initializer: str | None = None
    ) -> None:
        super().__init__()
        checks.at_least(1, in_channels=in_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.weight_initializer = weight_initializer
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight_initializer == "glorot":
            glorot(self.weight)
        else:  # Kaiming's, to the last bit as PyG computes it
            bound = math.sqrt(6 / ((1 + math.sqrt(5) ** 2) * self.in_channels))
            nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            bound = 1.0 / math.sqrt(self.in_channels)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, bias={self.bias is not None})"


class FeatureLinear(Linear):
    """For dense and for sparse CSR rows."""

    def forward(self, x: Rows) -> Tensor:
        out = project(x, self.weight)
        return out if self.bias is None else out + self.bias


class DenseLinear(nn.Linear):
    """`torch.nn.Linear` by our own products where they serve: the same bits, faster, on all threads."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.dense_linear(input, self.weight, self.bias)


# Rows at a time in the backward pass: bounds the scratch memory, and fixes the order of the sums.
BLOCK = 1024


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` on [nodes, channels], with the same bits at any number of threads.

    torch's own kernel sums each thread's share of the rows by itself, so its last bits follow the number of
    threads. Here every sum over the rows is a plain reduction, whose order torch fixes per column.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or self.momentum is None or self.weight is None or input.dim() != 2:
            return super().forward(input)
        if not direct(input, self.weight) or input.dtype not in (torch.float32, torch.float64):
            return super().forward(input)
        mean, variance = _moments(input.detach())
        if self.running_mean is not None and self.running_var is not None:
            rows = input.size(0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(variance * (rows / max(1, rows - 1)), self.momentum)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
        return _Normalise.apply(input, mean, (variance + self.eps).rsqrt(), self.weight, self.bias)


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` with the same bits at any number of threads.

    torch's own kernel sums the gradient of weight and bias thread by thread; here these are applied outside.
    """

    def forward(self, input: Tensor) -> Tensor:
        normal = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return ops.affine(normal, self.weight, self.bias)


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each column, in two passes: exact enough, faster than torch's single pass."""
    mean = x.mean(dim=0)
    squares = torch.zeros_like(mean)
    for rows in x.split(BLOCK):
        squares += (rows - mean).square_().sum(dim=0)
    return mean, squares / x.size(0)


class _Normalise(torch.autograd.Function):
    """(x - mean) * inverse * weight + bias, mean and inverse those of x, which alone is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, mean, inverse, weight)
        scale = inverse * weight
        return torch.addcmul(bias - mean * scale, x, scale, out=empty_like(x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, Tensor, Tensor]:
        x, mean, inverse, weight = ctx.saved_tensors
        d_bias = grad.sum(dim=0)
        products = torch.zeros_like(d_bias)
        for g, rows in zip(grad.split(BLOCK), x.split(BLOCK), strict=True):
            products += (rows - mean).mul_(g).sum(dim=0)
        d_weight = products * inverse
        # dx = scale * (grad - mean(grad) - normalised x * mean(grad * normalised x)), in two passes over x.
        scale = inverse * weight
        slope = -scale * inverse * d_weight / x.size(0)
        shift = -scale * d_bias / x.size(0) - mean * slope
        dx = torch.addcmul(shift, grad, scale, out=empty_like(x))
        return dx.addcmul_(x, slope), None, None, d_weight, d_bias
