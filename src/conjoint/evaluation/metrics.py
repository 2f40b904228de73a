"""How good is a labelling: against classes, and as a clustering. Plain arrays in, plain numbers out."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn import metrics

from ..errors import InputError

Labels = npt.NDArray[np.integer[Any]]


def accuracy(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Share of nodes with the right class."""
    truth, predicted = _pair(truth, predicted)
    return float(np.mean(truth == predicted))


def macro_f1(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """F1 of each class that occurs in either list, then their plain mean: small classes count as much."""
    return float(metrics.f1_score(*_pair(truth, predicted), average="macro"))


def confusion(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, classes: int | None = None
) -> npt.NDArray[np.int64]:
    """How often class i was taken for class j. -> [classes, classes]"""
    truth, predicted = _pair(truth, predicted)
    size = int(max(truth.max(), predicted.max())) + 1
    if classes is not None and classes < size:
        raise InputError(f"classes={classes}: class {size - 1} occurs; give at least {size}")
    size = classes or size
    return np.bincount(truth * size + predicted, minlength=size * size).reshape(size, size)


def clustering(truth: npt.ArrayLike, clusters: npt.ArrayLike) -> dict[str, float]:
    """All measures of a clustering in one row.

    Mutual information (0: knowing the cluster says nothing of the class; 1: it says all), normalised by the
    mean entropy; the share of node pairs on which both agree, set to 0 for chance and 1 for equal partitions;
    and accuracy under the best one-to-one naming of clusters by classes.
    """
    truth, clusters = _pair(truth, clusters)
    matrix = confusion(truth, clusters)
    named = matrix[linear_sum_assignment(matrix, maximize=True)]
    return {
        "nmi": float(metrics.normalized_mutual_info_score(truth, clusters)),
        "ari": float(metrics.adjusted_rand_score(truth, clusters)),
        "hungarian_accuracy": float(named.sum() / matrix.sum()),
    }


def _pair(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Labels, Labels]:
    one, other = np.asarray(truth), np.asarray(predicted)
    if one.shape != other.shape or one.ndim != 1:
        raise InputError(
            f"truth has shape {one.shape} and predicted {other.shape}; give two lists of equal length"
        )
    if one.size == 0:
        raise InputError("truth is empty; there is nothing to measure")
    if one.dtype.kind not in "iu" or other.dtype.kind not in "iu":
        raise InputError(f"labels must be whole numbers, got {one.dtype} and {other.dtype}")
    if min(one.min(), other.min()) < 0:
        raise InputError("labels hold -1 (unlabelled); leave those nodes out first")
    return one.astype(np.int64), other.astype(np.int64)
