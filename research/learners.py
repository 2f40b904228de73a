"""Models of the grids that are no single network: a cheap control, and choices that validation makes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from conjoint.errors import InputError
from conjoint.evaluation.metrics import accuracy, macro_f1
from conjoint.experiments.execute import config_of, train
from conjoint.experiments.rows import RunSpec
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import to_scipy
from conjoint.graph.splits import Split
from conjoint.selection.choose import choose_intervention
from research.recommended import choose_recommended

Floats = npt.NDArray[np.float64]
STRENGTHS = tuple(10.0**k for k in range(-2, 6))  # of 1/C: from hardly any regularisation to a lot


def smooth_logistic(data: Graph, split: Split, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Logistic regression on features averaged over `hops` steps of D^-1/2 (A + I) D^-1/2, as a row.

    scikit-learn's C is the one with the highest validation accuracy, ties by lower validation loss. Nothing
    is random: the row depends on the graph and the split alone. Rows are scaled to mean length 1, so that C
    means the same on every graph. Smoothing is linear, so the weights are applied before it: no smoothed
    feature is ever made but those of the training nodes.
    """
    hops = settings.get("hops", 2)
    if set(settings) - {"hops"} or not isinstance(hops, int) or hops < 0:
        raise InputError(
            f"smooth-logistic settings {dict(settings)}: it has hops, a whole number of 0 or more"
        )
    began = time.perf_counter()
    x, walk = _features(data), _walk(data)
    train, val, y = split.train.numpy(), split.val.numpy(), data.y.numpy()
    near = sp.csr_array(sp.eye_array(len(y)).tocsr()[train])
    for _ in range(hops):
        near = near @ walk
    smoothed = near @ x
    scale = 1.0 / max(float(np.sqrt(smoothed.multiply(smoothed).sum(axis=1)).mean()), 1e-12)
    best: tuple[tuple[float, float], Floats, npt.NDArray[Any]] | None = None
    for c in STRENGTHS:
        classes, weight, bias = _fit(scale * smoothed, y[train], c)
        scores = x @ (scale * weight.T)
        for _ in range(hops):
            scores = walk @ scores
        probabilities = _softmax(np.asarray(scores) + bias)
        right = accuracy(y[val], classes[probabilities[val].argmax(axis=1)])
        merit = (right, -_loss(probabilities[val], y[val], classes))
        if best is None or merit > best[0]:
            best = (merit, probabilities, classes)
    assert best is not None
    (_, negative_loss), probabilities, classes = best
    seconds = time.perf_counter() - began
    return _row(classes[probabilities.argmax(axis=1)], y, split) | {
        "val_loss": -negative_loss,
        "fit_seconds": round(seconds, 3),
        "parameters": len(classes) * (x.shape[1] + 1),
    }


def control(spec: RunSpec, data: Graph, split: Split) -> dict[str, Any]:
    return smooth_logistic(data, split, spec.model_settings)


def automatic(spec: RunSpec, data: Graph, split: Split) -> dict[str, Any]:
    """What `conjoint train --intervention auto` does."""
    return _chosen(spec, data, split, choose_intervention)


def recommended(spec: RunSpec, data: Graph, split: Split) -> dict[str, Any]:
    """What `conjoint train` did before it learnt ensembles."""
    return _chosen(spec, data, split, choose_recommended)


LEARNERS: dict[str, Callable[[RunSpec, Graph, Split], dict[str, Any]]] = {
    "smooth-logistic": control,
    "cat-auto": automatic,
    "recommended": recommended,
}


def _chosen(spec: RunSpec, data: Graph, split: Split, choice: Callable[..., Any]) -> dict[str, Any]:
    """Validation chooses a network, which is then trained in full. To choose is part of its time."""
    began = time.perf_counter()
    name = choice(data, split, config_of(spec), spec.model_settings).model
    seconds = time.perf_counter() - began
    row = train(replace(spec, model=name), data, split)
    return row | {"fit_seconds": round(row["fit_seconds"] + seconds, 3), "chosen": name}


def _features(data: Graph) -> sp.csr_array:
    """Rows that sum to 1 where no feature is negative, as the networks read them."""
    x = sp.csr_array(to_scipy(data.x), dtype=np.float64)
    if x.nnz and x.data.min() < 0:
        return x
    total = x.sum(axis=1)
    return sp.csr_array(sp.diags_array(1.0 / np.where(total == 0, 1.0, total)) @ x)


def _walk(data: Graph) -> sp.csr_array:
    nodes = data.num_nodes
    source, target = data.edge_index.numpy()
    both = sp.csr_array((np.ones(len(source)), (target, source)), shape=(nodes, nodes)) + sp.eye_array(nodes)
    both = sp.csr_array(both)
    both.data[:] = 1.0
    root = sp.diags_array(1.0 / np.sqrt(both.sum(axis=1)))
    return sp.csr_array(root @ both @ root)


def _fit(x: sp.csr_array, y: npt.NDArray[Any], c: float) -> tuple[npt.NDArray[Any], Floats, Floats]:
    """Classes, weights [classes, features] and intercepts; two classes have two rows as well."""
    model = LogisticRegression(C=c, max_iter=2000).fit(sp.csr_matrix(x), y)
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:
        weight, bias = np.concatenate([-weight / 2, weight / 2]), np.concatenate([-bias / 2, bias / 2])
    return model.classes_, weight, bias


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _loss(probabilities: Floats, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> float:
    """Cross-entropy; a class that training never saw has the smallest probability there is."""
    place = {int(name): k for k, name in enumerate(classes)}
    of_truth = [
        row[place[int(c)]] if int(c) in place else 0.0 for row, c in zip(probabilities, y, strict=True)
    ]
    return float(-np.log(np.maximum(of_truth, 1e-12)).mean())


def _row(guess: npt.NDArray[Any], y: npt.NDArray[Any], split: Split) -> dict[str, Any]:
    """The entries that `conjoint.training.evaluate` gives for a network; the test gate opens here."""
    test = split.reveal_test().numpy()
    parts = {
        "train": split.train.numpy(),
        "val": split.val.numpy(),
        "test": test,
        "all": np.flatnonzero(y >= 0),
    }
    row: dict[str, Any] = {"saw_test": False, "best_epoch": 1, "epochs": 1, "stopped": "converged"}
    row |= {f"{part}_accuracy": accuracy(y[nodes], guess[nodes]) for part, nodes in parts.items()}
    return row | {"test_macro_f1": macro_f1(y[test], guess[test])}
