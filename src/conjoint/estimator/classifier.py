"""Node classification with scikit-learn's interface."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length

from ..errors import InputError
from .base import GraphEstimator
from .labels import encode, labelled, require_two


class CATClassifier(ClassifierMixin, GraphEstimator):
    """Conjoint attention network that learns from a few labelled nodes of a graph.

    Args:
        intervention: what the structural attention listens to: "mf" (matrix factorisation of the graph),
            "sc" (self-expression), "fs" (similarity of features), None (features alone), or an
            `Intervention` of your own, which is copied.
        strategy: how it joins the feature attention: "implicit", "explicit" or "structural".
        hidden, heads, num_layers, dropout: size of each head, heads of the hidden layers, layers (2 or more),
            and dropout, as in `CAT`.
        epochs, patience, lr, weight_decay, penalty_weight: as in `TrainConfig`.
        validation_fraction: share of each class's labels that choose the epoch instead of training.
        row_normalise: divide each row of X by its sum: "always", "never", or "auto" = where X is mostly
            zeros and nothing is negative, as word counts are.
        n_neighbors, metric: the nearest-neighbour graph that stands in where no graph is given, and that
            links new nodes to those of training.
        random_state: an int gives the same bits on every fit.

    Attributes:
        classes_: the classes, sorted.
        transduction_: the class of every node of the training graph.
        label_distributions_: the class probabilities behind it. [nodes, classes]
        embedding_: the last hidden layer. [nodes, heads * hidden]
        attention_: table of src, dst, layer, head, feature, structural, conjoint.
        network_: the trained `CAT`.
        history_: one row per epoch.
        n_iter_: epochs trained.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1], [0, 2], [1, 0], [2, 0]])
    >>> edges = [[0, 2], [1, 3]]
    >>> CATClassifier(random_state=0).fit(X, [0, -1, 1, -1], graph=edges).predict(X)
    array([0, 0, 1, 1])
    """

    def fit(self, X: Any, y: Any = None, *, graph: Any = None) -> "CATClassifier":
        """Train on the labelled rows of X; the others take part in the graph alone.

        Args:
            X: features, one row per node: array, SciPy sparse, pandas.
            y: one label per row; -1, NaN, None and "" mean unlabelled.
            graph: who is linked to whom: a square SciPy matrix or array, an edge index of shape [2, edges]
                (NumPy or torch), a NetworkX graph, or None for the nearest neighbours in X. Read as
                undirected and without weights.
        """
        if y is None:
            raise InputError("y: this CATClassifier requires y to be passed, but the target y is None")
        nodes, links = self._read(X, graph)
        self.classes_, codes = encode(y)
        check_consistent_length(nodes.x, codes)
        require_two(self.classes_)
        answers = self._train(nodes, links, codes, self._seed())
        self.label_distributions_ = answers.probabilities
        self.transduction_ = self.classes_[answers.probabilities.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any, *, graph: Any = None) -> npt.NDArray[np.float64]:
        """Class probabilities, in the order of `classes_`. See `predict` for which graph is used."""
        return self._answers(X, graph).probabilities

    def predict(self, X: Any, *, graph: Any = None) -> npt.NDArray[Any]:
        """The class of each row.

        A row that was in the training X gets the answer of its node. A new row is linked to its `n_neighbors`
        nearest training nodes, unless `graph` says more: a square graph between the rows of X, or a SciPy
        matrix of shape [rows, training nodes + rows] that links them to both.
        """
        best = self.predict_proba(X, graph=graph).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Accuracy over the rows that have a label."""
        truth, told = labelled(y)
        if not told.any():
            raise InputError("y: no row has a label, so there is nothing to score; give some")
        predicted = self.predict(X, graph=graph)
        check_consistent_length(predicted, truth, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight)[told]
        truth = np.asarray(truth[told].tolist()) if truth.dtype == object else truth[told]
        return float(accuracy_score(truth, predicted[told], sample_weight=weight))
