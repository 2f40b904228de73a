"""Cross-validation of the transductive task: all nodes and edges stay, only labels are hidden."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..errors import InputError
from .labels import labelled


class Transductive(ClassifierMixin, BaseEstimator):
    """A classifier of rows of one graph, for `cross_val_score`, `GridSearchCV` and their like.

    Its samples are numbers of rows, so that a fold hides labels and nothing else: each fit sees all of X and
    of the graph, and the labels of the rows that it was given.

    Args:
        estimator: a `CATClassifier`; its parameters are tuned as `estimator__model` and so on.
        X: features of all nodes.
        graph: of all nodes, as in `CATClassifier.fit`.

    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from conjoint import CATClassifier, Transductive
    >>> X, y = np.eye(2).repeat(6, axis=0), np.arange(2).repeat(6)
    >>> pairs = [(i, j) for i in range(12) for j in range(i) if y[i] == y[j]]
    >>> whole = Transductive(CATClassifier(model="gcn", epochs=20, random_state=0), X, pairs)
    >>> cross_val_score(whole, np.arange(12), y, cv=3)
    array([1., 1., 1.])
    """

    def __init__(self, estimator: Any, X: Any, graph: Any = None) -> None:
        self.estimator = estimator
        self.X = X
        self.graph = graph

    def __sklearn_clone__(self) -> "Transductive":
        return Transductive(clone(self.estimator), self.X, self.graph)  # one X and graph for all folds

    def fit(self, rows: Any, y: Any, **parts: Any) -> "Transductive":
        """Train with the labels of these rows of X. `parts` go to the estimator's `fit`."""
        rows = self._checked(rows)
        values, told = labelled(y)
        if len(values) != len(rows):
            raise InputError(f"y: {len(values)} labels for {len(rows)} rows; give one for each")
        every = np.full(_length(self.X), None, dtype=object)
        every[rows[told]] = values[told]
        self.estimator_ = clone(self.estimator).fit(self.X, every, graph=self.graph, **parts)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, rows: Any) -> npt.NDArray[np.float32]:
        check_is_fitted(self)
        return self.estimator_.label_distributions_[self._checked(rows)]

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    def _checked(self, rows: Any) -> npt.NDArray[np.int64]:
        found = np.asarray(rows)
        found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
        count = _length(self.X)
        whole = found.ndim == 1 and found.dtype.kind in "iu"
        if not whole or (len(found) and not 0 <= found.min() <= found.max() < count):
            raise InputError(f"rows: give numbers of rows of X, from 0 to {count - 1}, in place of features")
        return found.astype(np.int64)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
