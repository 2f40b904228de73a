"""The splits that an ensemble's members are trained with: labels are judged by trainings without them."""

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
    alone = np.bincount(y[nodes])[y[nodes]] == 1
    kept, nodes = nodes[alone], nodes[~alone]
    count = next((folds for most, folds in FOLDS if len(nodes) <= most), LARGE)
    count = min(count, max(2, len(nodes) // LEAST_FOLD))
    order = np.random.default_rng(seed).permutation(nodes)
    order = order[np.argsort(y[order], kind="stable")]  # class by class, so that folds are stratified
    part = np.empty(len(y), dtype=np.int64)
    part[order] = np.arange(len(order)) % count
    cut = 1 if count == LARGE else count
    made = []
    for k in range(cut):
        val = torch.from_numpy(nodes[part[nodes] == k])
        train = torch.from_numpy(np.sort(np.concatenate([kept, nodes[part[nodes] != k]])))
        made.append(Split(train, torch.cat([split.val, val]).unique(), f"fold {k + 1} of {count}", seed))
    return made


def too_few(labels: Array) -> bool:
    """Whether too few labels could be held out without a class vanishing from training."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts[counts > 1].sum() < FEWEST)
