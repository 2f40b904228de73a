"""Eq. 9: weighted sums of neighbours, dropout on the weights, the self term (csrc/aggregation.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency, Transposed
from ...kernels import memory
from ...kernels.gradient import once_differentiable
from ...kernels.library import MAX_HEADS, Values, partial_sums, run
from .activation import Mask, drop, mask_of
from .entries import by_source, contiguous, serves, weighted_sum
from .projection import head_project

Summed = tuple[Tensor, Tensor, Tensor | None]  # alpha, x and self_weight as `aggregate` takes them


def aggregate(
    adj: Adjacency,
    alpha: Tensor,  # [entries, heads]
    x: Tensor,  # [num_src, heads or 1, channels]; 1 = all heads read the same rows
    self_weight: Tensor | None = None,  # [heads]: eps
    dropout: float = 0.0,
    seed: Tensor | None = None,  # [1] int64; which attention weights are dropped is a function of it
) -> Tensor:
    """Eq. 9: sum_j alpha_ij x_j + eps / |N_i| x_i, with dropout on alpha. -> [num_dst, heads, channels]

    The self term takes target i to be row i of `x` (targets come first).
    """
    if serves(adj, alpha, x, self_weight) and alpha.size(1) <= MAX_HEADS:
        mask, tensors = mask_of(dropout, seed), contiguous(alpha, x, self_weight)
        return _Aggregate.apply(adj, by_source(adj, x), mask, *tensors)
    if dropout > 0.0 and seed is not None:
        alpha = drop(alpha, dropout, seed)
    if x.size(1) == 1:
        x = x.expand(-1, alpha.size(1), -1)
    heads = zip(alpha.unbind(1), x.unbind(1), strict=True)
    out = torch.stack([weighted_sum(adj, False, *head) for head in heads], dim=1)
    if self_weight is not None:
        share = self_weight.unsqueeze(0) / adj.degree.clamp(min=1).unsqueeze(1).to(alpha.dtype)
        out = out + share.unsqueeze(2) * x[: adj.num_dst]
    return out


class _Aggregate(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, back: Transposed | None, mask: Mask, *tensors: Any) -> Tensor:
        ctx.adj, ctx.back, ctx.mask = adj, back, mask
        ctx.save_for_backward(*tensors)
        return sum_neighbours(adj, tensors, mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        parts = (ctx.adj, ctx.back, ctx.saved_tensors, ctx.mask, grad.contiguous())
        return None, None, None, *sum_neighbours_backward(*parts, with_alpha=ctx.needs_input_grad[3])


def sum_neighbours(adj: Adjacency, tensors: Summed, mask: Mask) -> Tensor:
    """The kernel of `aggregate`."""
    alpha, x, _ = tensors
    out = memory.empty(x, adj.num_dst, alpha.size(1), x.size(2))
    run("aggregate", x.dtype, (), (out,), _aggregation(adj, None, tensors, mask))
    return out


def sum_neighbours_backward(
    adj: Adjacency,
    back: Transposed | None,  # without it there is no d x
    tensors: Summed,
    mask: Mask,
    grad: Tensor,
    with_alpha: bool = True,  # d alpha is not made if it is not wanted and d x is
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(d alpha, d x, d self_weight)"""
    alpha, x, self_weight = tensors
    structure = _aggregation(adj, back, tensors, mask)
    d_alpha = memory.empty(alpha, *alpha.shape) if with_alpha or back is None else None
    d_self = None if self_weight is None else torch.empty_like(self_weight)
    sums = (None if d_self is None else partial_sums(x, alpha.size(1)), d_self)
    if back is None:
        run("aggregate_backward_alpha", x.dtype, (grad,), (d_alpha, *sums), structure)
        return d_alpha, None, d_self
    nonzero_rows, d_x = x.new_empty(adj.num_dst, dtype=torch.uint8), memory.empty(x, *x.shape)
    run("aggregate_backward", x.dtype, (grad,), (nonzero_rows, d_x, d_alpha, *sums), structure)
    return d_alpha, d_x, d_self


def _aggregation(adj: Adjacency, back: Transposed | None, tensors: Summed, mask: Mask) -> Values:
    """The members of `Aggregation` in csrc/aggregation.h; heads are not merged."""
    alpha, x, _ = tensors
    sources = (None, None, None) if back is None else (back.rowptr, back.row, back.perm)
    sizes = (adj.num_dst, x.size(0), alpha.size(1), x.size(1), x.size(2), 0)
    return (adj.rowptr, adj.col, *sources, *sizes, *tensors, *mask)


def aggregate_and_project(
    adj: Adjacency,
    alpha: Tensor,  # [entries, heads]
    x: Tensor,  # [num_src, 1 or heads, in]
    weight: Tensor,  # [heads, out, in]
    self_weight: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    """Eq. 9 with W after the sum instead of before it, the same by linearity. -> [num_dst, heads, out]"""
    fits = serves(adj, alpha, x, weight, self_weight) and alpha.size(1) <= MAX_HEADS
    if fits and not torch.compiler.is_compiling():
        mask, tensors = mask_of(dropout, seed), contiguous(weight, alpha, x, self_weight)
        return _AggregateProject.apply(adj, by_source(adj, x), mask, *tensors)
    return head_project(aggregate(adj, alpha, x, self_weight, dropout, seed), weight)


class _AggregateProject(Function):
    """Aggregate, then one product per head, each written straight into its columns of the result.

    The sums between the two are needed again for the gradient of the weight. Where they are large they are
    not kept but summed anew, which costs one more pass and saves the memory at the moment of its peak; their
    gradient then takes their place.
    """

    @staticmethod
    def forward(
        ctx: Any, adj: Adjacency, back: Transposed | None, mask: Mask, weight: Tensor, *tensors: Any
    ) -> Tensor:
        sums = sum_neighbours(adj, tensors, mask)
        out = memory.empty(sums, sums.size(0), weight.size(0), weight.size(1))
        for h in range(weight.size(0)):
            torch.mm(sums[:, h], weight[h].t(), out=out[:, h])
        ctx.adj, ctx.back, ctx.mask = adj, back, mask
        kept = sums if sums.numel() * sums.element_size() < memory.HUGE_BYTES else None
        ctx.save_for_backward(kept, weight, *tensors)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        kept, weight, *tensors = ctx.saved_tensors
        sums = sum_neighbours(ctx.adj, tensors, ctx.mask) if kept is None else kept
        d_sums = sums if kept is None else memory.empty(sums, *sums.shape)
        d_weight = torch.empty_like(weight)
        for h in range(weight.size(0)):
            torch.mm(grad[:, h].t(), sums[:, h], out=d_weight[h])
            torch.mm(grad[:, h], weight[h], out=d_sums[:, h])
        grads = sum_neighbours_backward(ctx.adj, ctx.back, tensors, ctx.mask, d_sums)
        return None, None, None, d_weight, *grads
