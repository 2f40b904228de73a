"""CSR tensors: the same numbers as the dense ones."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from conjoint.graph.sparse import csr_tensor, row_normalise, rows, to_csr, to_scipy

matrices = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from([0.0, 0.0, 1.0, 2.5]),
)


@given(matrices)
def test_there_and_back(dense: np.ndarray) -> None:
    x = to_csr(dense)
    assert x.layout == torch.sparse_csr and x.dtype == torch.float32
    assert torch.equal(x.to_dense(), torch.from_numpy(dense))
    assert np.array_equal(to_scipy(x).toarray(), dense)


@given(matrices, st.data())
def test_rows_are_the_dense_rows(dense: np.ndarray, data: st.DataObject) -> None:
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(dense) - 1))), dtype=torch.int64)
    assert torch.equal(rows(to_csr(dense), index).to_dense(), torch.from_numpy(dense)[index])
    assert torch.equal(rows(torch.from_numpy(dense), index), torch.from_numpy(dense)[index])


@given(matrices)
def test_rows_sum_to_one_or_stay_empty(dense: np.ndarray) -> None:
    ours, theirs = row_normalise(to_csr(dense)).to_dense(), row_normalise(torch.from_numpy(dense))
    assert torch.allclose(ours, theirs)
    assert torch.allclose(ours.sum(1), torch.from_numpy((dense.sum(1) > 0).astype(np.float32)))


def test_the_input_is_not_changed_and_oddities_are_cleaned() -> None:
    odd = sp.csr_matrix(
        (np.array([1.0, 2.0, 0.0], dtype=np.float32), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    x = to_csr(odd)
    assert x.values().tolist() == [3.0] and x.col_indices().tolist() == [1]
    assert odd.nnz == 3


def test_a_bad_index_is_caught_and_no_warning_escapes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
    with pytest.raises(RuntimeError):
        csr_tensor(torch.tensor([0, 1]), torch.tensor([5]), torch.ones(1), (1, 1))
