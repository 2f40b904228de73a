"""Features times a weight, dense or sparse, and rows times the attention vectors (csrc/projection.h)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import Function
from torch.utils.weak import WeakTensorKeyDictionary

from ...graph.sparse import SPARSE_BELOW, csr_tensor, is_sparse
from ...kernels import memory
from ...kernels.gradient import once_differentiable
from ...kernels.library import WIDE_PRODUCTS, Values, partial_sums, run, takes
from ...recording import compiling, direct
from .activation import drop, mask_of
from .entries import EXACT, contiguous

Pair = Sequence[Tensor | None]  # of source and of target
NARROW = 16  # rows or columns of a product, below which it is left to torch
ONE_BLOCK = 192  # terms of a sum, as in csrc/product.h: with more, MKL adds a bias before the last of them
WORTH_PACKING = (128, 1 << 17)  # columns and numbers, from which on dense features are searched for zeros
_PLACES = torch.empty(0, dtype=torch.int32)
_packed: WeakTensorKeyDictionary = WeakTensorKeyDictionary()  # x -> (its version, its non-zeros or None)


def without_zeros(x: Tensor) -> Tensor:
    """Features that are stored dense but mostly zero, as sparse CSR rows; anything else as it is.

    What was found is kept as long as the tensor lives and is not changed: torch counts its changes in place
    (not those through `x.data` or a NumPy array that shares its memory).
    """
    columns, numbers = WORTH_PACKING
    if is_sparse(x) or x.requires_grad or x.numel() < numbers or x.dim() != 2 or x.size(1) < columns:
        return x
    if not x.is_cpu or x.dtype not in EXACT or not direct(x) or x.is_inference():
        return x
    version, found = _packed.get(x, (None, None))
    if version != x._version:
        found = _pack(x)
        _packed[x] = (x._version, found)
    return x if found is None else found


def _pack(x: Tensor) -> Tensor | None:
    x = x.contiguous()
    rowptr = torch.empty(x.size(0) + 1, dtype=torch.long)
    if not takes(x):
        return x.to_sparse_csr() if int(x.count_nonzero()) < SPARSE_BELOW * x.numel() else None
    run("count_nonzeros", x.dtype, (x, *x.shape), (rowptr,))
    count = int(rowptr[-1])
    if count >= SPARSE_BELOW * x.numel():
        return None
    col, values = rowptr.new_empty(count), x.new_empty(count)
    run("pack_nonzeros", x.dtype, (x, *x.shape, rowptr), (col, values))
    return csr_tensor(rowptr, col, values, x.shape, checked=False)


def project(x: Tensor, weight: Tensor, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    """W x for every row, dense or sparse CSR (dropout: sparse alone). [rows, in], [out, in] -> [rows, out]"""
    if is_sparse(x):
        return sparse_project(x, weight, dropout, seed)
    if takes(x, weight) and x.dim() == 2 and not torch.compiler.is_compiling():
        return _Project.apply(*contiguous(x, weight))
    return x @ weight.t()


def dense_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b of dense rows, with the bits of torch's own. [rows, in], [out, in], [out] -> [rows, out]"""
    fits = x.dim() == 2 and min(x.size(0), *weight.shape) >= NARROW and weight.size(1) <= ONE_BLOCK
    if WIDE_PRODUCTS and fits and x.dtype == torch.float32 and takes(x, weight, bias) and not compiling():
        return _Project.apply(*contiguous(x, weight)).add_(bias)
    return F.linear(x, weight, bias)


class _Project(Function):
    """With large results in memory that is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        d_weight = multiply(grad.t(), x) if ctx.needs_input_grad[1] else None
        return multiply(grad, weight) if ctx.needs_input_grad[0] else None, d_weight


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a b without a gradient, in memory that is kept if it is large. [rows, depth], [depth, columns]

    The kernel has the bits of MKL's product, which takes other ways for the narrowest shapes.
    """
    (rows, depth), columns = a.shape, b.size(1)
    out = memory.empty(a, rows, columns)
    a_turned, b_turned = not a.is_contiguous(), not b.is_contiguous()
    stored = (a.t() if a_turned else a), (b.t() if b_turned else b)
    fits = min(rows, columns) >= NARROW and all(one.is_contiguous() for one in stored)
    if not WIDE_PRODUCTS or a.dtype != torch.float32 or not fits:
        return torch.mm(a, b, out=out)
    turned = torch.empty_like(stored[1]) if b_turned else None
    reads = (*stored, rows, columns, depth, int(a_turned), int(b_turned))
    run("product", a.dtype, reads, (turned, out))
    return out


def head_project(x: Tensor, weight: Tensor) -> Tensor:
    """W_h x_nh. [nodes, heads, in], [heads, out, in] -> [nodes, heads, out]"""
    return torch.einsum("nhi,hci->nhc", x, weight)


def sparse_project(x: Tensor, weight: Tensor, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    """Rows of a sparse CSR matrix, dropout on its stored values, times a weight [out, in]. -> [rows, out]"""
    if takes(weight) and x.dtype == weight.dtype and x.col_indices().dtype == torch.int64:
        stored = (x.crow_indices(), x.col_indices(), x.values().contiguous())
        sizes = (x.size(0), weight.size(1), weight.size(0))
        rows = (*stored, *sizes, *mask_of(dropout, seed))  # the members of `SparseRows`
        return _SparseProject.apply(rows, x.size(0), weight.contiguous())
    if dropout > 0.0 and seed is not None:
        x = drop(x, dropout, seed)
    return _PlainSparseProject.apply(x, weight) if direct(x, weight) else x @ weight.t()


class _PlainSparseProject(Function):
    """In plain torch, whose own gradient of this product would be dense."""

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


class _SparseProject(Function):
    """The non-zeros that survive dropout are found once, and kept: the hash costs more than the product."""

    @staticmethod
    def forward(ctx: Any, rows: Values, row_count: int, weight: Tensor) -> Tensor:
        ctx.rows = rows
        col, seed, at, count = rows[1], rows[6], None, None
        if isinstance(col, Tensor) and seed is not None:
            at, count = memory.empty(_PLACES, col.numel()), memory.empty(_PLACES, row_count)
        out = weight.new_empty(row_count, weight.size(0))
        run("sparse_project", weight.dtype, (weight,), (torch.empty_like(weight), at, count, out), rows)
        ctx.save_for_backward(weight, at, count)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        weight, at, count = ctx.saved_tensors
        by_input, d_weight = torch.empty_like(weight), torch.empty_like(weight)
        reads = (grad.contiguous(), at, count)
        run("sparse_project_backward", weight.dtype, reads, (by_input, d_weight), ctx.rows)
        return None, None, d_weight


def head_dot(x: Tensor, att: Tensor) -> Tensor:
    """<x_nh, att_h> per node and head. [nodes, heads, channels], [heads, channels] -> [nodes, heads]"""
    if takes(x, att):
        return _HeadDots.apply(*contiguous(x, att, None))[0]
    return torch.einsum("nhc,hc->nh", x, att)


def head_dots(x: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, Tensor]:
    """`head_dot` with the vectors of source and of target: one reading of x gives both."""
    if takes(x, att_src, att_dst):
        return _HeadDots.apply(*contiguous(x, att_src, att_dst))
    return head_dot(x, att_src), head_dot(x, att_dst)


class _HeadDots(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *vectors: Tensor | None) -> tuple[Tensor, Tensor | None]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, *vectors)
        ctx.second_rows = 0 if vectors[1] is None else x.size(0)
        return dot_heads(x, vectors, ctx.second_rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        x, *vectors = ctx.saved_tensors
        if all(grad is None for grad in grads):
            return None, None, None
        d_x = memory.empty(x, *x.shape) if ctx.needs_input_grad[0] else None
        d_first, d_second = dot_heads_backward(x, vectors, ctx.second_rows, contiguous(*grads), d_x)
        return d_x, d_first, None if vectors[1] is None else d_second


def dot_heads(x: Tensor, vectors: Pair, second_rows: int) -> tuple[Tensor, Tensor | None]:
    """The kernel of `head_dots`, with products with the second vector for the first rows alone."""
    first = x.new_empty(x.size(0), x.size(1))
    second = None if vectors[1] is None else x.new_empty(second_rows, x.size(1))
    run("head_dots", x.dtype, (x, *x.shape, *vectors, second_rows), (first, second))
    return first, second


def dot_heads_backward(
    x: Tensor, vectors: Pair, second_rows: int, grads: Pair, d_x: Tensor | None, add: bool = False
) -> Tensor:
    """Fill `d_x`, or add to it. -> d of both vectors, [2, heads, channels]"""
    d_vectors = x.new_empty(2, x.size(1), x.size(2))
    reads = (x, *x.shape, *vectors, second_rows, *grads, int(add))
    run("head_dots_backward", x.dtype, reads, (d_x, partial_sums(x, d_vectors.numel()), d_vectors))
    return d_vectors
