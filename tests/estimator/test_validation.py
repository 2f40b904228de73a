import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.errors import InputError
from conjoint.estimator.validation import hold_out


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=5),
    st.floats(0.01, 0.99),
    st.integers(0, 5),
)
def test_every_class_trains_and_gives_what_it_can_spare(sizes: list[int], share: float, seed: int) -> None:
    codes = np.concatenate([np.full(size, code) for code, size in enumerate(sizes)] + [np.full(7, -1)])
    split = hold_out(codes, share, seed)
    train, val = split.train.numpy(), split.val.numpy()
    assert (codes[train] >= 0).all() and (codes[val] >= 0).all()
    if max(sizes) == 1:
        assert train.tolist() == val.tolist() == list(range(len(sizes)))
        return
    assert len(np.intersect1d(train, val)) == 0
    assert len(train) + len(val) == sum(sizes)
    for code, size in enumerate(sizes):
        spared = int((codes[val] == code).sum())
        assert spared == (0 if size == 1 else min(max(1, round(share * size)), size - 1))


def test_without_validation_the_training_nodes_choose() -> None:
    split = hold_out(np.array([0, 0, 1, 1, -1]), 0.0, 0)
    assert split.train.tolist() == split.val.tolist() == [0, 1, 2, 3]


def test_the_seed_decides() -> None:
    codes = np.arange(200) % 2
    one, same, other = (hold_out(codes, 0.2, seed).val.tolist() for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(InputError, match="validation_fraction"):
        hold_out(np.array([0, 1]), share, 0)
