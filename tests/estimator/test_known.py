import numpy as np
import scipy.sparse as sp

from conjoint.estimator.known import means_over_equals, row_keys

X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=np.float32)


def test_keys_follow_the_numbers_not_their_storage() -> None:
    explicit_zero = sp.csr_array((X.ravel(), np.tile([0, 1], 4), [0, 2, 4, 6, 8]), shape=(4, 2))
    negative_zero = np.where(X == 0, np.float32(-0.0), X)
    keys = row_keys(X)
    assert keys == row_keys(sp.csr_matrix(X)) == row_keys(explicit_zero) == row_keys(negative_zero)
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


def test_the_place_of_a_number_counts() -> None:
    assert row_keys(np.array([[1.0, 0.0]])) != row_keys(np.array([[0.0, 1.0]]))


def test_chunks_leave_no_seam() -> None:
    x = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    assert row_keys(x)[4090:4100] == row_keys(x[4090:4100])


def test_twins_share_the_mean_of_their_answers() -> None:
    answers = np.array([[1.0], [5.0], [3.0], [7.0]], dtype=np.float32)
    asked = np.array([[0.0, 1.0], [9.0, 9.0], [2.0, 0.0]])
    means = means_over_equals(row_keys(asked), row_keys(X))
    assert (means @ answers).ravel().tolist() == [2.0, 0.0, 5.0]
    assert np.diff(means.indptr).tolist() == [2, 0, 1]
