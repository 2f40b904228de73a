"""The splits of trainings that are to use all labels: no label is judged by a training that had it."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..graph.graph import Graph
from ..graph.splits import Split

Array = npt.NDArray[Any]
FOLDS = (
    (1_000, 10),
    (5_000, 5),
    (50_000, 3),
)  # up to so many labels, so many folds; above, one held-out part
FEWEST = 10  # labels that are worth being held out from each other
# Validation nodes of a given split that are too few to choose by: training nodes then judge too, in folds.
FEW_VALIDATION = 300
LEAST_FOLD = 5  # labels of a fold
JUDGING_PARTS = 10  # of the labels, where two trainings share them: one part chooses, one judges
LARGE = 20  # parts of a very large number of labels, one of which is held out


def fold_splits(graph: Graph, split: Split, seed: int) -> list[Split]:
    """The splits that members are trained with.

    Where a given split has few validation nodes, its training nodes are cut into folds too, each judged
    beside the validation nodes. The only label of a class always trains.
    """
    if split.val.numel() >= FEW_VALIDATION:
        return [split]
    y, nodes = graph.y.numpy(), split.train.numpy()
    if too_few(y[nodes]):  # nothing can be held out: the labels that train also choose
        return [split if split.val.numel() else Split(split.train, split.train, "all", seed)]
    alone = _alone(y[nodes])
    kept, nodes = nodes[alone], nodes[~alone]
    count = next((folds for most, folds in FOLDS if len(nodes) <= most), LARGE)
    count = min(count, max(2, len(nodes) // LEAST_FOLD))
    part = _parts(nodes, y[nodes], count, seed)
    cut = 1 if count == LARGE else count
    made = []
    for k in range(cut):
        val = torch.from_numpy(nodes[part == k])
        train = torch.from_numpy(np.sort(np.concatenate([kept, nodes[part != k]])))
        made.append(Split(train, torch.cat([split.val, val]).unique(), f"fold {k + 1} of {count}", seed))
    return made


def judging_split(graph: Graph, split: Split) -> Split:
    """The split itself, if it has validation nodes. Else all of its training nodes are to serve, and this is
    the split of a first training: a tenth of them choose (its validation nodes), a tenth judge (its test
    nodes), of less than fifty a larger part. Where none can be held out, all train and choose.
    """
    if split.val.numel():
        return split
    y, nodes = graph.y.numpy(), split.train.numpy()
    if too_few(y[nodes]):
        return replace(split, val=split.train)
    alone = _alone(y[nodes])
    kept, nodes = nodes[alone], nodes[~alone]
    count = min(JUDGING_PARTS, max(4, len(nodes) // LEAST_FOLD))
    part = _parts(nodes, y[nodes], count, 0 if split.seed is None else split.seed)
    choose, judge = part == 0, part == count // 2  # apart, so that a class of two keeps one
    train = np.sort(np.concatenate([kept, nodes[~(choose | judge)]]))
    found = (torch.from_numpy(index) for index in (train, nodes[choose], nodes[judge]))
    return Split(next(found), next(found), f"{split.name}, held out", split.seed, (), next(found))


def _alone(labels: Array) -> Array:
    """Which labels are the only one of their class."""
    return np.bincount(labels)[labels] == 1


def _parts(nodes: Array, labels: Array, count: int, seed: int) -> Array:
    """A part of 0 to count - 1 for each node, at random, with as many of each class in every part."""
    place = np.random.default_rng(seed).permutation(len(nodes))
    place = place[np.argsort(labels[place], kind="stable")]
    part = np.empty(len(nodes), dtype=np.int64)
    part[place] = np.arange(len(nodes)) % count
    return part


def too_few(labels: Array) -> bool:
    """Whether too few labels could be held out without a class vanishing from training."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts[counts > 1].sum() < FEWEST)
