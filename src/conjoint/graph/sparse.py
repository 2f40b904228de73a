"""Sparse features as torch CSR tensors: the one place that makes them, so torch's notices are met once."""

import warnings
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..errors import InputError

# CSR spends 12 bytes on an entry where dense spends 4, and products on it cost more per entry:
# below this share of non-zeros it wins clearly. PubMed (0.1002) is meant to be on the sparse side.
SPARSE_BELOW = 0.15

SparseChoice = Literal["auto"] | bool


# torch warns once per process that CSR is in beta: make it do so here, unseen.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.eye(1).to_sparse_csr()


def csr_tensor(
    crow: Tensor, col: Tensor, values: Tensor, size: tuple[int, ...], checked: bool = True
) -> Tensor:
    """A `torch.sparse_csr` tensor, checked: a bad index would be read out of bounds by later products."""
    return torch.sparse_csr_tensor(crow, col, values, size, check_invariants=checked)


def is_sparse(x: Tensor) -> bool:
    return x.layout == torch.sparse_csr


def stored(x: Tensor) -> Tensor:
    """The stored values of a sparse tensor, or a dense one itself."""
    return x.values() if is_sparse(x) else x


def to_csr(matrix: Any) -> Tensor:
    """SciPy sparse (any format) or dense array -> float32 CSR tensor, columns sorted, no stored zeros."""
    m = sp.csr_matrix(matrix, dtype=np.float32)
    if m is matrix or np.shares_memory(m.data, getattr(matrix, "data", np.empty(0))):
        m = m.copy()  # the next three lines work in place
    m.sum_duplicates()
    m.eliminate_zeros()
    m.sort_indices()
    return _tensor(m)


def _tensor(m: sp.csr_matrix) -> Tensor:
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (m.indptr, m.indices))
    return csr_tensor(crow, col, torch.from_numpy(m.data), (int(m.shape[0]), int(m.shape[1])))


def to_scipy(x: Tensor) -> sp.csr_matrix:
    """CSR or dense tensor -> SciPy CSR matrix of the same values."""
    if not is_sparse(x):
        return sp.csr_matrix(x.detach().cpu().numpy())
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return sp.csr_matrix(tuple(p.detach().cpu().numpy() for p in parts), shape=(x.size(0), x.size(1)))


def rows(x: Tensor, index: Tensor) -> Tensor:
    """``x[index]`` for a dense or CSR tensor (torch has no row selection for CSR, SciPy's is compiled)."""
    if not is_sparse(x):
        return x[index]
    return _tensor(to_scipy(x)[index.cpu().numpy()]).to(x.device)


def row_normalise(x: Tensor) -> Tensor:
    """Divide each row by its sum; a row that sums to 0 stays as it is. Dense stays dense, CSR stays CSR."""
    if not is_sparse(x):
        total = x.sum(dim=1, keepdim=True)
        return x / torch.where(total == 0, torch.ones_like(total), total)
    crow, values = x.crow_indices(), x.values()
    row = torch.repeat_interleave(torch.arange(x.size(0), device=x.device), crow.diff())
    total = values.new_zeros(x.size(0)).index_add_(0, row, values)
    total[total == 0] = 1
    return csr_tensor(crow, x.col_indices(), values / total[row], (x.size(0), x.size(1)))


def pack_features(x: Any, sparse: SparseChoice) -> Tensor:
    """Array, SciPy matrix or tensor -> float32 tensor, CSR or dense by ``sparse`` ("auto": by density)."""
    if sparse not in ("auto", True, False):
        raise InputError(f"sparse={sparse!r} is not a choice; take 'auto', True or False")
    if isinstance(x, Tensor):
        x = to_scipy(x) if is_sparse(x) else x.detach().cpu().numpy()
    from_scipy = hasattr(x, "tocsr")
    x = x.tocsr() if from_scipy else x
    values = x.data if from_scipy else x
    if not np.isfinite(values).all():
        raise InputError("features hold NaN or infinite values; fill or drop them first")
    share = np.count_nonzero(values) / max(1, x.shape[0] * x.shape[1])
    if sparse is True or (sparse == "auto" and share < SPARSE_BELOW):
        return to_csr(x)
    return torch.from_numpy(np.ascontiguousarray(x.toarray() if from_scipy else x, dtype=np.float32))
