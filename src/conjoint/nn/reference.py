"""The operations of conjoint attention in plain torch: one equation, one function.

These are the definition that the compiled kernels are tested against, the path on a GPU, and the fallback
where no compiled kernels are at hand. None of them makes a tensor of entries x heads x channels.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph.adjacency import Adjacency
from ..kernels.dropout import scale
from .randomness import keep_mask


def segment_sum(adj: Adjacency, per_entry: Tensor) -> Tensor:
    """Sum over each node's entries. [entries, k] -> [num_dst, k]"""
    out = per_entry.new_zeros(adj.num_dst, *per_entry.shape[1:])
    return out.index_add(0, adj.row, per_entry)


def edge_softmax(adj: Adjacency, logit: Tensor) -> Tensor:
    """Eq. 5: softmax over N_i of any per-entry logit. [entries, k] -> [entries, k]"""
    row = adj.row
    peak = logit.new_full((adj.num_dst, *logit.shape[1:]), -torch.inf)
    index = row.view(-1, *[1] * (logit.dim() - 1)).expand_as(logit)
    peak = peak.scatter_reduce(0, index, logit.detach(), "amax")
    weight = (logit - peak[row]).exp()
    return weight / segment_sum(adj, weight)[row]


def edge_dot(adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """<left_i, right_j> for every entry, i listening to j. [num_dst, r], [num_src, r] -> [entries]"""
    return _EdgeDot.apply(adj, left, right)


def edge_total(adj: Adjacency, factors: Tensor) -> Tensor:
    """<A, V V^T> with the paper's A (no self-loops, parallel edges once). V: [num_src, r]"""
    score = edge_dot(adj, factors[: adj.num_dst], factors)
    return (score * adj.simple.to(score.dtype)).sum()


def spread(adj: Adjacency, factors: Tensor) -> Tensor:
    """A^T V with the paper's A (no self-loops, parallel edges once). [num_dst, r] -> [num_src, r]"""
    return _Spread.apply(adj, factors)


def attention(
    adj: Adjacency,
    a_src: Tensor,  # [num_src, heads]
    a_dst: Tensor | None,  # [num_dst, heads]
    edge_logit: Tensor | None,  # [entries, heads]
    structure: Tensor | None,  # [entries, 1 or heads]: s_ij if implicit, C_ij if explicit
    mix: Tensor | None,  # [heads, 2]: r_f, r_s; implicit only
    negative_slope: float,
    explicit: bool,
) -> tuple[Tensor, Tensor]:
    """Eq. 4 with Eq. 7 (implicit) or Eq. 8 (explicit). Returns (alpha, f), both [entries, heads].

    Eq. 8 multiplies two softmaxes and renormalises; their denominators cancel, so it is one softmax of the
    summed logits. In that case f is not needed for alpha and alpha is returned twice.
    """
    logit = a_src[adj.col]
    if a_dst is not None:
        logit = logit + a_dst[adj.row]
    if edge_logit is not None:
        logit = logit + edge_logit
    logit = F.leaky_relu(logit, negative_slope)
    if explicit and structure is not None:
        alpha = edge_softmax(adj, logit + structure)
        return alpha, alpha
    feature = edge_softmax(adj, logit)
    if structure is None or mix is None:
        return feature, feature
    return mix[:, 0] * feature + mix[:, 1] * structure, feature


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
    if dropout > 0.0 and seed is not None:
        alpha = _dropped(alpha, dropout, seed)
    if x.size(1) == 1:
        x = x.expand(-1, alpha.size(1), -1)
    out = _WeightedSum.apply(adj, alpha, x)
    if self_weight is not None:
        share = self_weight.unsqueeze(0) / adj.degree.clamp(min=1).unsqueeze(1).to(alpha.dtype)
        out = out + share.unsqueeze(2) * x[: adj.num_dst]
    return out


def shares(
    mix_logit: Tensor | None, eps_logit: Tensor | None, heads: int
) -> tuple[Tensor | None, Tensor | None]:
    """Eq. 6 and the epsilon of Eq. 9, for every head. -> (r_f, r_s) [heads, 2], epsilon [heads]"""
    mix = None if mix_logit is None else mix_logit.softmax(-1).expand(heads, 2)
    return mix, None if eps_logit is None else eps_logit.sigmoid().expand(heads)


def attend(
    adj: Adjacency,
    h: Tensor,  # [num_src, heads, channels]
    att_src: Tensor,  # [heads, channels]
    att_dst: Tensor,  # [heads, channels]
    edge_logit: Tensor | None,  # [entries, heads]
    structure: Tensor | None,  # [entries] or [entries, 1 or heads]: s_ij with a mix, else C_ij
    mix_logit: Tensor | None,  # [1 or heads, 2]: g_f and g_s
    eps_logit: Tensor | None,  # [1 or heads]
    negative_slope: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    merge: bool = False,  # the mean of the heads
) -> Tensor:
    """A layer after its projection: Eq. 4, 7 or 8, 9, where sources and targets are one kind of node."""
    mix, self_weight = shares(mix_logit, eps_logit, h.size(1))
    a_src, a_dst = head_dots(h, att_src, att_dst)
    if structure is not None and structure.dim() == 1:
        structure = structure.unsqueeze(1)
    inputs = (a_src, a_dst[: adj.num_dst], edge_logit, structure, mix)
    alpha, _ = attention(adj, *inputs, negative_slope, explicit=mix is None)
    out = aggregate(adj, alpha, h, self_weight, dropout, seed)  # [num_dst, heads, channels]
    return out.mean(dim=1, keepdim=True) if merge else out


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
    return head_project(aggregate(adj, alpha, x, self_weight, dropout, seed), weight)


def head_dot(x: Tensor, att: Tensor) -> Tensor:
    """<x_nh, att_h> per node and head. [nodes, heads, channels], [heads, channels] -> [nodes, heads]"""
    return torch.einsum("nhc,hc->nh", x, att)


def head_dots(x: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, Tensor]:
    """`head_dot` with the vectors of source and of target: one reading of x gives both."""
    return head_dot(x, att_src), head_dot(x, att_dst)


def head_project(x: Tensor, weight: Tensor) -> Tensor:
    """W_h x_nh. [nodes, heads, in], [heads, out, in] -> [nodes, heads, out]"""
    return torch.einsum("nhi,hci->nhc", x, weight)


def project(x: Tensor, weight: Tensor) -> Tensor:
    """W x for every row. [rows, in], [out, in] -> [rows, out]"""
    return x @ weight.t()


def sparse_project(x: Tensor, weight: Tensor, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    """Rows of a sparse CSR matrix, dropout on its stored values, times a weight [out, in]. -> [rows, out]"""
    if dropout > 0.0 and seed is not None:
        x = drop(x, dropout, seed)
    return _SparseProject.apply(x, weight)


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """Dropout with a mask that is a function of the seed and the place. Sparse CSR: on the stored values,
    which is dense dropout exactly, because a dropped zero is a zero."""
    values = x.values() if x.layout == torch.sparse_csr else x
    values = _dropped(values, dropout, seed)
    return with_values(x, values) if x.layout == torch.sparse_csr else values


def activate_and_drop(x: Tensor, activation: str, dropout: float, seed: Tensor | None) -> Tensor:
    """The step between two layers: ELU or ReLU (or "none"), then dropout."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "elu": F.elu,
        "relu": F.relu,
        "none": lambda same: same,
    }
    x = functions[activation](x)
    return drop(x, dropout, seed) if dropout > 0.0 and seed is not None else x


def _dropped(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    keep = keep_mask(seed, x.numel(), dropout).view_as(x)
    return x * (keep.to(x.dtype) * scale(dropout))


def with_values(x: Tensor, values: Tensor) -> Tensor:
    return _csr(x.crow_indices(), x.col_indices(), values, x.shape)


def _csr(rowptr: Tensor, col: Tensor, values: Tensor, size: tuple[int, ...]) -> Tensor:
    _spend_the_beta_notice()
    return torch.sparse_csr_tensor(rowptr, col, values, size, check_invariants=False)


@cache
def _spend_the_beta_notice() -> None:
    """torch says once per process that CSR is in beta; let it say so where nobody is disturbed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.eye(1).to_sparse_csr()


class _WeightedSum(torch.autograd.Function):
    """out_i = sum_j alpha_ij x_j, head by head, through sparse products: no per-edge messages."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, alpha: Tensor, x: Tensor) -> Tensor:
        ctx.adj = adj
        ctx.save_for_backward(alpha, x)
        size = (adj.num_dst, adj.num_src)
        heads = [_spmm(adj.rowptr, adj.col, alpha[:, h], x[:, h], size) for h in range(alpha.size(1))]
        return torch.stack(heads, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        adj: Adjacency = ctx.adj
        alpha, x = ctx.saved_tensors
        d_alpha = d_x = None
        heads = range(alpha.size(1))
        if ctx.needs_input_grad[1]:
            d_alpha = torch.stack([_entry_dot(adj, grad[:, h], x[:, h]) for h in heads], dim=1)
        if ctx.needs_input_grad[2]:
            back = adj.transposed
            size = (adj.num_src, adj.num_dst)
            weight = alpha[back.perm]
            parts = [_spmm(back.rowptr, back.row, weight[:, h], grad[:, h], size) for h in heads]
            d_x = torch.stack(parts, dim=1)
        return None, d_alpha, d_x


class _EdgeDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adj: Adjacency, left: Tensor, right: Tensor) -> Tensor:
        ctx.adj = adj
        ctx.save_for_backward(left, right)
        return _entry_dot(adj, left, right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        adj: Adjacency = ctx.adj
        left, right = ctx.saved_tensors
        back = adj.transposed
        d_left = _spmm(adj.rowptr, adj.col, grad, right, (adj.num_dst, adj.num_src))
        d_right = _spmm(back.rowptr, back.row, grad[back.perm], left, (adj.num_src, adj.num_dst))
        return None, d_left, d_right


class _Spread(torch.autograd.Function):
    """A^T V through one sparse product each way: no gathered rows."""

    @staticmethod
    def forward(ctx: Any, adj: Adjacency, factors: Tensor) -> Tensor:
        ctx.adj = adj
        back = adj.transposed
        value = adj.simple[back.perm].to(factors.dtype)
        return _spmm(back.rowptr, back.row, value, factors, (adj.num_src, adj.num_dst))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        adj: Adjacency = ctx.adj
        value = adj.simple.to(grad.dtype)
        return None, _spmm(adj.rowptr, adj.col, value, grad, (adj.num_dst, adj.num_src))


class _SparseProject(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ weight.t()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        by_column = x.to_sparse_coo().t().coalesce()
        return None, torch.sparse.mm(by_column, grad).t()


def _spmm(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, size: tuple[int, int]) -> Tensor:
    if x.numel() == 0 or col.numel() == 0:
        return x.new_zeros(size[0], x.size(1))
    return _csr(rowptr, col, value.contiguous(), size) @ x.contiguous()


def _entry_dot(adj: Adjacency, left: Tensor, right: Tensor, chunk: int = 1 << 22) -> Tensor:
    """Per-entry dot products, a bounded number of gathered floats at a time."""
    step = max(1, chunk // max(1, left.size(1)))
    parts = [
        (left[adj.row[k : k + step]] * right[adj.col[k : k + step]]).sum(-1)
        for k in range(0, adj.num_entries, step)
    ]
    return torch.cat(parts) if parts else left.new_zeros(0)
