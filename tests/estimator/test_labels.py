from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.errors import InputError
from conjoint.estimator.labels import encode, hold_out, labelled, set_aside


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([7, -1, 3, 7], [3, 7]),
        (np.array([7.0, np.nan, 3.0, 7.0]), [3, 7]),
        (np.array([7.0, -1.0, 3.0, 7.0]), [3, 7]),
        (["b", "", "a", "b"], ["a", "b"]),
        (["b", -1, "a", "b"], ["a", "b"]),  # NumPy turns it into "-1"
        (np.array(["b", None, "a", "b"], dtype=object), ["a", "b"]),
        (np.array(["b", float("nan"), "a", "b"], dtype=object), ["a", "b"]),
        (np.array(["b", -1, "a", "b"], dtype=object), ["a", "b"]),
        (pd.Series(["b", None, "a", "b"]), ["a", "b"]),
        (pd.Series(["b", None, "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([7, pd.NA, 3, 7], dtype="Int64"), [3, 7]),
        (np.array([7, pd.NA, 3, 7], dtype=object), [3, 7]),
    ],
)
def test_the_second_label_is_missing(y: Any, classes: list[Any]) -> None:
    found, codes = encode(y)
    assert found.tolist() == classes
    assert codes.tolist() == [1, -1, 0, 1]
    assert labelled(y)[1].tolist() == [True, False, True, True]


def test_booleans_are_classes() -> None:
    found, codes = encode([True, False, True])
    assert (found.tolist(), codes.tolist()) == ([False, True], [1, 0, 1])


def test_labels_that_cannot_be_learnt_from() -> None:
    with pytest.raises(InputError, match="no node has a label"):
        encode([-1, -1])
    with pytest.raises(ValueError, match="Unknown label type"):
        encode([0.5, 1.7])
    with pytest.raises(ValueError, match="infinity"):
        encode([np.inf, 1.0])
    with pytest.raises(InputError, match=r"one class only \(4\)"):
        encode([4, -1, 4])


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


def test_the_rows_set_aside_choose_and_all_others_train() -> None:
    codes = np.array([0, 1, 0, -1, 1, 0])
    for rows in ([4, 0], np.array([4, 0], dtype=np.int32)):
        split = set_aside(codes, rows)
        assert (split.train.tolist(), split.val.tolist()) == ([1, 2, 5], [4, 0])
    assert set_aside(codes, np.arange(6) == 2).val.tolist() == [2]
    assert codes.tolist() == [0, 1, 0, -1, 1, 0]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "give some rows"),
        ([0.5], "give some rows"),
        ([True, False], "one entry per row"),
        ([6], "from 0 to 5"),
        ([0, 0], "each once"),
        ([3], "row 3 has no label"),
        ([1, 4], "fewer than two classes"),
    ],
)
def test_rows_that_cannot_choose(rows: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        set_aside(np.array([0, 1, 0, -1, 1, 0]), rows)
