"""What people judge predictions by: labels and probabilities in, one number out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Array = npt.NDArray[Any]
BINS = 10


def _scikit() -> Any:
    from sklearn import metrics  # half a second to import, which a training's first epochs need not wait for

    return metrics


def accuracy(y: Array, p: Array) -> float:
    """Share of nodes with the right class."""
    return float((p.argmax(axis=1) == y).mean())


def balanced_accuracy(y: Array, p: Array) -> float:
    """The mean of the classes' own accuracies: a rare class counts as much as a common one."""
    right, _, there = _counts(y, p)
    return float((right[there > 0] / there[there > 0]).mean())


def macro_f1(y: Array, p: Array) -> float:
    """The mean of the classes' F1."""
    right, said, there = _counts(y, p)
    either = said + there  # twice the right ones, over all that were said or are there
    return float((2.0 * right[either > 0] / either[either > 0]).mean())


def _counts(y: Array, p: Array) -> tuple[Array, Array, Array]:
    """Of each class, the nodes that are rightly said to have it, that are said to, and that have it."""
    said, classes = p.argmax(axis=1), p.shape[1]
    right, there = np.bincount(y[said == y], minlength=classes), np.bincount(y, minlength=classes)
    return right, np.bincount(said, minlength=classes), there


def log_loss(y: Array, p: Array) -> float:
    """Minus the mean logarithm of the true class's probability; lower is better."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())


def _one_against_rest(score: Callable[[Array, Array], float], y: Array, p: Array) -> float:
    """Of the second class where there are two, else the mean over classes that occur."""
    if p.shape[1] == 2:
        return float(score(y == 1, p[:, 1])) if 0 < (y == 1).sum() < len(y) else 0.5
    found = [c for c in range(p.shape[1]) if 0 < (y == c).sum() < len(y)]
    return float(np.mean([score(y == c, p[:, c]) for c in found])) if found else 0.5


def roc_auc(y: Array, p: Array) -> float:
    """How surely a node of a class is ranked before one of another; classes against the rest, averaged."""
    return _one_against_rest(_area, y, p)


def average_precision(y: Array, p: Array) -> float:
    """Precision averaged over recall; classes against the rest, averaged."""
    return _one_against_rest(_precision, y, p)


def _by_score(positive: Array, score: Array) -> tuple[Array, Array]:
    """How many are positive and how many are not at each score that occurs, the highest first.

    scikit-learn's functions give the same; they check their input for longer than this takes, and a bootstrap
    asks for hundreds.
    """
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    start = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    found = np.add.reduceat(positive[order].astype(np.int64), start)
    return found, np.diff(np.append(start, len(score))) - found


def _area(positive: Array, score: Array) -> float:
    found, other = _by_score(positive, score)
    below = other.sum() - np.cumsum(other)
    return float((found * (below + 0.5 * other)).sum() / (found.sum() * other.sum()))


def _precision(positive: Array, score: Array) -> float:
    found, other = _by_score(positive, score)
    return float((found * np.cumsum(found) / np.cumsum(found + other)).sum() / found.sum())


def calibration_error(y: Array, p: Array) -> float:
    """Mean distance between confidence and accuracy, over ten bins of confidence; lower is better."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    parts = [bins == k for k in range(BINS)]
    return float(sum(abs(sure[one].mean() - right[one].mean()) * one.mean() for one in parts if one.any()))


METRICS: dict[str, Callable[[Array, Array], float]] = {
    "accuracy": accuracy,
    "balanced-accuracy": balanced_accuracy,
    "macro-f1": macro_f1,
    "log-loss": log_loss,
    "roc-auc": roc_auc,
    "average-precision": average_precision,
    "calibration-error": calibration_error,
}
LOWER_IS_BETTER = ("log-loss", "calibration-error")


def check_metric(name: str) -> None:
    if name not in METRICS:
        raise InputError(f"metric {name!r} is not known; choose one of {', '.join(METRICS)}")


def merit(metric: str, y: Array, p: Array) -> float:
    """The metric with the sign that makes higher better."""
    found = METRICS[metric](y, p)
    return -found if metric in LOWER_IS_BETTER else found


def all_metrics(y: Array, p: Array) -> dict[str, float]:
    """Every metric, and what always saying the most common class would have as accuracy."""
    shares = np.bincount(y, minlength=p.shape[1]) / max(len(y), 1)
    return {name: round(found(y, p), 6) for name, found in METRICS.items()} | {
        "majority": float(shares.max())
    }


def majority_metrics(y: Array, classes: int) -> dict[str, float]:
    """Every metric of always saying these nodes' most common class, with their shares as probabilities."""
    shares = np.bincount(y, minlength=classes) / max(len(y), 1)
    return {name: round(found(y, np.tile(shares, (len(y), 1))), 6) for name, found in METRICS.items()}


def per_class(y: Array, p: Array, names: list[str]) -> list[dict[str, Any]]:
    """One row a class: nodes, precision, recall, F1."""
    count = _scikit().precision_recall_fscore_support
    parts = count(y, p.argmax(axis=1), labels=range(len(names)), zero_division=0.0)
    rows = zip(names, *parts, strict=True)
    return [
        {"class": name, "nodes": int(nodes), "precision": float(a), "recall": float(b), "f1": float(c)}
        for name, a, b, c, nodes in rows
    ]
