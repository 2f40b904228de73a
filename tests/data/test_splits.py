"""Splits: pure in (labels, seed), disjoint, and the test part behind its gate."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conjoint.data import Split, load_graph, make_split
from conjoint.errors import InputError
from conjoint.graph.splits import build_split, by_time, fraction, per_class

LABELS = np.array([0, 1, 2] * 40 + [-1] * 9)


def parts(split: Split) -> list[set[int]]:
    return [set(p.tolist()) for p in (split.train, split.val, split.reveal_test())]


def test_per_class_takes_so_many_of_each_class_and_never_an_unlabelled_node() -> None:
    split = per_class(LABELS, 3, train_per_class=5, num_val=20, num_test=30)
    assert split.sizes == (15, 20, 30)
    assert np.bincount(LABELS[split.train.numpy()]).tolist() == [5, 5, 5]
    train, val, test = parts(split)
    assert not (train & val or train & test or val & test)
    assert all(LABELS[i] >= 0 for i in train | val | test)


def test_the_same_seed_gives_the_same_split_and_another_seed_another() -> None:
    def drawn(seed: int) -> list[set[int]]:
        return parts(per_class(LABELS, seed, train_per_class=5, num_val=20, num_test=30))

    assert drawn(1) == drawn(1) != drawn(2)
    assert parts(fraction(LABELS, 1)) == parts(fraction(LABELS, 1)) != parts(fraction(LABELS, 2))


def test_no_rule_touches_the_global_random_state() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    per_class(LABELS, 0, train_per_class=2, num_val=5, num_test=5)
    assert torch.equal(before, torch.get_rng_state())


@given(st.lists(st.integers(0, 3), min_size=30, max_size=80), st.integers(0, 99))
def test_fraction_covers_all_labelled_nodes_once(labels: list[int], seed: int) -> None:
    array = np.array([0] * 10 + [1] * 10 + labels)
    split = fraction(array, seed, train=0.5, val=0.25)
    train, val, test = parts(split)
    assert len(train) + len(val) + len(test) == len(array) == len(train | val | test)
    assert set(array[list(train)]) == set(array)


def test_test_nodes_come_out_only_through_the_gate() -> None:
    split = per_class(LABELS, 0, train_per_class=2, num_val=10, num_test=7)
    visible = [name for name in vars(split) if not name.startswith("_")]
    assert visible == ["train", "val", "name", "seed", "notes"]
    assert "test=7" in repr(split)
    split.reveal_test().zero_()  # what comes out is a copy
    assert len(set(split.reveal_test().tolist())) == 7
    with pytest.raises(AttributeError):
        split.train = split.val  # type: ignore[misc]


def test_time_cuts_by_date() -> None:
    years = np.arange(len(LABELS)) % 4 + 2016
    split = by_time(LABELS, years, train_until=2017, val_until=2018)
    assert set(years[split.train.numpy()]) == {2016, 2017}
    assert set(years[split.val.numpy()]) == {2018}
    assert set(years[split.reveal_test().numpy()]) == {2019}


def test_a_class_that_training_never_sees_is_reported() -> None:
    labels = np.array([0, 1, 0, 1, 2, 2])
    split = build_split([0, 1], [2, 4], [3, 5], labels=labels, name="mine")
    assert split.notes == (
        "1 validation class never seen in training: 2",
        "1 test class never seen in training: 2",
    )


@pytest.mark.parametrize(
    ("train", "val", "test", "message"),
    [
        ([0, 1], [1], [2], "1 node in both train and validation"),
        ([0, 1], [2], [1], "1 node in both train and test"),
        ([0, 1], [2], [2], "1 node in both validation and test"),
        ([0, 1], [], [2], "no validation nodes"),
        ([0, 1], [2], [9], "outside 0..5"),
        ([0, 1, 1], [2], [3], "lists a train node twice"),
        ([0, 2], [1], [3], "one class only"),
        ([0, 1], [5], [3], "without a label"),
    ],
)
def test_a_bad_split_is_refused(train: list[int], val: list[int], test: list[int], message: str) -> None:
    labels = np.array([0, 1, 0, 1, 0, -1])
    with pytest.raises(InputError, match=message):
        build_split(train, val, test, labels=labels, name="mine")


def test_only_a_published_split_may_share_validation_and_test_nodes() -> None:
    split = make_split(load_graph("cora", source="embedded"), "released")
    assert split.sizes == (140, 400, 1000)
    assert split.notes == ("40 nodes in both validation and test, as published",)
    _, val, test = parts(split)
    assert val & test == set(range(500, 540))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nope", {}, "choose one of public, per-class"),
        ("public", {}, "load Planetoid's files"),
        ("given", {}, "name the column"),
        ("time", {}, "needs a time for each node"),
        (
            "per-class",
            {"train_per_class": 181},
            "class Rule_Learning has 180 nodes, fewer than train_per_class=181",
        ),
        ("per-class", {"num_test": 5000}, "lower them or use split 'fraction'"),
        ("per-class", {"num_val": 0}, "num_val=0 must be 1 or more"),
        ("per-class", {"size": 3}, "size= is not one of its options; it has train_per_class"),
        ("per-class", {"seed": -1}, "seed=-1 must be 0 or more"),
        ("fraction", {"train": 0.9, "val": 0.2}, "sum to less than 1"),
    ],
)
def test_make_split_says_what_is_wrong_and_what_to_do(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_split(load_graph("cora", source="embedded"), name, **options)


def test_one_class_only_cannot_be_split() -> None:
    with pytest.raises(InputError, match="all labelled nodes have class 1"):
        fraction(np.array([1, 1, -1]), 0)
    with pytest.raises(InputError, match="no node has a label"):
        per_class(np.array([-1, -1]), 0)
