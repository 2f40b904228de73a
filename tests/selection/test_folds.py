"""How labels are cut into folds: how many, and that each label is judged by a training without it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split
from conjoint.selection.folds import fold_splits, judging_split, too_few


def labelled(count: int, val: int = 0, classes: int = 2) -> tuple[Graph, Split]:
    nodes = torch.arange(count + val)
    edges = torch.zeros(2, 0, dtype=torch.long)
    graph = Graph(torch.zeros(count + val, 1), nodes % classes, edges)
    return graph, Split(nodes[:count], nodes[count:], "given", 0)


@pytest.mark.parametrize(
    ("labels", "made", "of"),
    [
        (10, 2, 2),  # five labels in a fold
        (14, 2, 2),
        (15, 3, 3),
        (49, 9, 9),
        (1000, 10, 10),
        (1001, 5, 5),
        (5000, 5, 5),
        (5001, 3, 3),
        (50_000, 3, 3),
        (50_001, 1, 20),  # one twentieth is held out
    ],
)
def test_the_number_of_folds_follows_the_number_of_labels(labels: int, made: int, of: int) -> None:
    found = fold_splits(*labelled(labels), 3)
    assert [one.name for one in found] == [f"fold {k + 1} of {of}" for k in range(made)]
    judged = torch.cat([one.val for one in found])
    assert len(judged.unique()) == len(judged) == (labels if made == of else (labels + of - 1) // of)
    for one in found:
        assert torch.equal(torch.cat([one.train, one.val]).sort().values, torch.arange(labels))
        counts = np.bincount(one.val.numpy() % 2, minlength=2)
        assert abs(int(counts[0]) - int(counts[1])) <= 1 and one.seed == 3


def test_validation_nodes_that_suffice_are_the_only_ones_that_judge() -> None:
    graph, split = labelled(100, 300)
    assert fold_splits(graph, split, 0) == [split]
    graph, split = labelled(100, 299)
    found = fold_splits(graph, split, 0)
    assert len(found) == 10 and all(one.val.numel() == 299 + 10 for one in found)
    assert all(set(split.val.tolist()) <= set(one.val.tolist()) for one in found)


def test_labels_that_are_too_few_train_and_choose() -> None:
    graph, split = labelled(9)
    (only,) = fold_splits(graph, split, 5)
    assert (only.name, only.seed) == ("all", 5) and torch.equal(only.train, only.val)
    graph, split = labelled(9, 4)
    assert fold_splits(graph, split, 5) == [split]


def test_the_only_label_of_a_class_always_trains() -> None:
    assert too_few(np.array([0] * 9 + [1])) and not too_few(np.array([0] * 10 + [1]))
    graph, split = labelled(21)
    graph = graph.changed(y=torch.tensor([2] + [0, 1] * 10))
    found = fold_splits(graph, split, 0)
    assert len(found) == 4 and all(0 in one.train.tolist() and 0 not in one.val.tolist() for one in found)


@pytest.mark.parametrize(
    ("labels", "choose", "judge"),
    [
        (10, 3, 2),
        (20, 5, 5),
        (24, 6, 6),
        (30, 5, 5),
        (49, 6, 5),
        (50, 5, 5),
        (1000, 100, 100),
        (60_005, 6001, 6000),
    ],
)
def test_a_first_training_leaves_a_tenth_to_choose_and_a_tenth_to_judge(
    labels: int, choose: int, judge: int
) -> None:
    graph, split = labelled(labels)
    found = judging_split(graph, split)
    assert found.sizes == (labels - choose - judge, choose, judge) and found.name == "given, held out"
    parts = torch.cat([found.train, found.val, found.reveal_test()])
    assert torch.equal(parts.sort().values, torch.arange(labels))
    for part in (found.val, found.reveal_test()):
        counts = graph.y[part].bincount(minlength=2)
        assert counts.max() - counts.min() <= 1
    again, other = judging_split(graph, split), judging_split(graph, replace(split, seed=1))
    assert torch.equal(again.val, found.val) and not torch.equal(other.val, found.val)


@pytest.mark.parametrize("seed", range(20))
def test_no_class_is_held_out_whole(seed: int) -> None:
    graph, split = labelled(23)
    y = torch.tensor([0] * 14 + [1] * 2 + [2] * 2 + [3] + [4] * 3 + [5])
    found = judging_split(graph.changed(y=y), replace(split, seed=seed))
    assert found.val.numel() and found.reveal_test().numel()
    assert set(y[found.train].tolist()) == set(range(6)) and {18, 22} <= set(found.train.tolist())


def test_a_split_with_validation_nodes_is_left_alone_and_few_labels_are_not_held_out() -> None:
    graph, split = labelled(30, val=5)
    assert judging_split(graph, split) is split
    graph, few = labelled(9)
    found = judging_split(graph, few)
    assert found.train is few.train and found.val is few.train and not len(found.reveal_test())
