"""Scores per entry of the adjacency, their softmax, and sums over entries (csrc/structure.h, attention.h)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from ...graph.adjacency import Adjacency, Transposed, Unsorted
from ...graph.sparse import csr_tensor
from ...kernels.gradient import once_differentiable
from ...kernels.library import MAX_HEADS, partial_sums, run, takes
from ...recording import direct

EXACT = (torch.float32, torch.float64)


def targets(adj: Adjacency, per_source: Tensor) -> Tensor:
    """Targets are the first sources; a slice of everything would only cost a copy in the backward pass."""
    return per_source if adj.num_dst == per_source.size(0) else per_source[: adj.num_dst]


def by_source(adj: Adjacency, x: Tensor) -> Transposed | None:
    """The entries sorted by source, where x will want its gradient."""
    return adj.transposed if torch.is_grad_enabled() and x.requires_grad else None


def serves(adj: Adjacency, first: Tensor, *others: Tensor | None) -> bool:
    """Whether the kernels take these tensors on this graph."""
    return not isinstance(adj, Unsorted) and adj.num_entries > 0 and takes(first, *others)


def own_gradient(adj: Adjacency, *tensors: Tensor) -> bool:
    """Whether to use a gradient of our own, which makes no tensor of entries x channels, or torch's."""
    if isinstance(adj, Unsorted):
        return False
    return direct(*tensors) and all(one.dtype in EXACT for one in tensors if one.is_floating_point())


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def sum_entries(entries: Adjacency | Transposed, value: Tensor) -> Tensor:
    """Sum over the entries of each target or of each source, by the kernel. [entries, k] -> [nodes, k]"""
    perm = None if isinstance(entries, Adjacency) else entries.perm
    out = value.new_empty(entries.rowptr.numel() - 1, *value.shape[1:])
    reads = (entries.rowptr, perm, out.size(0), value.shape[1:].numel(), value)
    run("sum_entries", value.dtype, reads, (out,))
    return out


def edge_softmax(adj: Adjacency, logit: Tensor) -> Tensor:
    """Eq. 5: softmax over N_i of any per-entry logit. [entries, k] -> [entries, k]"""
    if serves(adj, logit) and logit.shape[1:].numel() <= MAX_HEADS:
        return _EdgeSoftmax.apply(adj, logit.contiguous())
    row, shape = adj.row, (adj.num_dst, *logit.shape[1:])
    index = row.view(-1, *[1] * (logit.dim() - 1)).expand_as(logit)
    peak = logit.new_full(shape, -torch.inf).scatter_reduce(0, index, logit.detach(), "amax")
    weight = (logit - peak[row]).exp()
    return weight / logit.new_zeros(shape).index_add(0, row, weight)[row]


class _EdgeSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, logit: Tensor) -> Tensor:
        ctx.rows, weight = (adj.rowptr, adj.num_dst, logit.shape[1:].numel()), torch.empty_like(logit)
        run("softmax", logit.dtype, (*ctx.rows, logit), (weight,))
        ctx.save_for_backward(weight)
        return weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (weight,) = ctx.saved_tensors
        d_logit = torch.empty_like(weight)
        run("softmax_backward", grad.dtype, (*ctx.rows, weight, grad.contiguous()), (d_logit,))
        return None, d_logit


def edge_dot(adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """<left_i, right_j> for every entry, j a neighbour of i. [num_dst, r], [num_src, r] -> [entries]"""
    left = targets(adj, left)
    if not serves(adj, left, right) and not own_gradient(adj, left, right):
        return (left[adj.row] * right[adj.col]).sum(-1)
    other = None if right is left and takes(left) else right.contiguous()
    return _EdgeDot.apply(adj, by_source(adj, right), left.contiguous(), other)


class _EdgeDot(Function):
    """Without a right side the left one is on both, and its gradient gathers both."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, back: Transposed | None, left: Tensor, right: Any) -> Tensor:
        ctx.adj, ctx.back = adj, back
        ctx.save_for_backward(left, right)
        return dot_entries(adj, left, left if right is None else right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        left, right = ctx.saved_tensors
        grad, d_left, d_right = grad.contiguous(), None, None
        if ctx.needs_input_grad[2]:
            d_left = sum_rows(ctx.adj, grad, left if right is None else right)
        if ctx.back is not None:
            d_right = sum_rows(ctx.back, grad, left, onto=d_left if right is None else None)
        return None, None, d_left, None if right is None else d_right


def dot_entries(adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """`edge_dot` of contiguous tensors, without a gradient."""
    rank = left.size(1)
    if serves(adj, left, right):
        out = left.new_empty(adj.num_entries)
        reads = (adj.rowptr, adj.col, adj.num_dst, right.size(0), rank, left, right)
        run("edge_dot", left.dtype, reads, (out,))
        return out
    step = max(1, (1 << 22) // max(1, rank))  # a bounded number of gathered floats at a time
    parts = zip(adj.row.split(step), adj.col.split(step), strict=True)
    return torch.cat([(left[row] * right[col]).sum(-1) for row, col in parts])


def sum_rows(
    entries: Adjacency | Transposed,
    weight: Tensor,  # [entries], in the adjacency's order; bool: 1 or 0
    x: Tensor,  # [nodes, rank], contiguous
    onto: Tensor | None = None,  # add the sums to the first rows of this; kernel only
) -> Tensor:
    """Sum over a row's entries of weight_ij x_j: a sparse matrix or its transpose times x. -> [rows, rank]"""
    rowptr, rows, rank = entries.rowptr, entries.rowptr.numel() - 1, x.size(1)
    col, perm = (entries.col, None) if isinstance(entries, Adjacency) else (entries.row, entries.perm)
    value, simple = (None, weight) if weight.dtype == torch.bool else (weight, None)
    if col.numel() and takes(x, value):
        out = x.new_empty(rows, rank) if onto is None else onto
        reads = (rowptr, col, perm, rows, rank, value, simple, x, int(onto is not None))
        run("sum_rows", x.dtype, reads, (out,))
        return out
    if x.numel() == 0 or col.numel() == 0:
        return x.new_zeros(rows, rank)
    weight = (weight if perm is None else weight[perm]).to(x.dtype)
    matrix = csr_tensor(rowptr, col, weight.contiguous(), (rows, x.size(0)), checked=False)
    return matrix @ x


def spread(adj: Adjacency, factors: Tensor) -> Tensor:
    """A^T V with the paper's A (no self-loops, parallel edges once). [num_dst, r] -> [num_src, r]"""
    return weighted_sum(adj, True, adj.simple, factors)


def weighted_sum(adj: Adjacency, transpose: bool, weight: Tensor, x: Tensor) -> Tensor:
    """The matrix of a weight per entry, or its transpose, times x. [entries], [nodes, r] -> [nodes, r]"""
    floats = [one for one in (weight, x) if one.dtype != torch.bool]
    if serves(adj, *floats) or own_gradient(adj, *floats):
        return SparseProduct.apply(adj, transpose, weight, x)
    row, col, rows = (adj.col, adj.row, adj.num_src) if transpose else (adj.row, adj.col, adj.num_dst)
    product = weight.unsqueeze(1) * x[col]
    return product.new_zeros(rows, x.size(1)).index_add(0, row, product)


class SparseProduct(Function):
    """No rows are gathered."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, transpose: bool, weight: Tensor, x: Tensor) -> Tensor:
        ctx.adj, ctx.transpose = adj, transpose
        ctx.save_for_backward(weight, x if ctx.needs_input_grad[2] else None)
        return sum_rows(adj.transposed if transpose else adj, weight.contiguous(), x.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (weight, x), adj, grad = ctx.saved_tensors, ctx.adj, grad.contiguous()
        d_weight = None if x is None else dot_entries(adj, grad, x.contiguous())  # not transposed
        other = adj if ctx.transpose else adj.transposed
        d_x = sum_rows(other, weight.contiguous(), grad) if ctx.needs_input_grad[3] else None
        return None, None, d_weight, d_x


def edge_total(adj: Adjacency, factors: Tensor) -> Tensor:
    """<A, V V^T> with the paper's A (no self-loops, parallel edges once). [num_src, r] -> scalar"""
    if serves(adj, factors):
        return _EdgeTotal.apply(adj, None if adj.symmetric else adj.transposed, factors.contiguous())
    score = edge_dot(adj, factors[: adj.num_dst], factors)
    return (score * adj.simple.to(score.dtype)).sum()


class _EdgeTotal(Function):
    """<A, V V^T> = <V, A V>, with the gradient A V + A^T V, which is twice A V where A is symmetric."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, back: Transposed | None, factors: Tensor) -> Tensor:
        product, total = sum_rows(adj, adj.simple, factors), factors.new_empty(())
        ctx.adj, ctx.back = adj, back
        ctx.save_for_backward(factors, product)
        # The same bits at any number of threads, which torch.dot does not promise.
        reads = (factors, product, product.numel())
        run("dot_total", factors.dtype, reads, (partial_sums(factors, 1), total))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, product = ctx.saved_tensors
        if ctx.back is None:
            return None, None, product * (2.0 * grad)
        rows = product.size(0)
        d_factors = sum_rows(ctx.back, ctx.adj.simple, factors[:rows])
        d_factors[:rows] += product
        return None, None, d_factors * grad
