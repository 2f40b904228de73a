"""Node classification with scikit-learn's interface."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length

from ..errors import InputError
from ..training.loop import OnEpoch
from .base import GraphEstimator
from .labels import encode, labelled


class CATClassifier(ClassifierMixin, GraphEstimator):
    """A network that learns from a few labelled nodes of a graph, as `conjoint train` and `learn` do.

    With no model or intervention named it is an ensemble: its members are judged by folds, so that every
    label serves. The same data, split and seed give the same bits through each of the three.

    Args:
        model: a name of `conjoint describe`: "cat-e-smooth", "gat", "gcn", "spread-trust", ...
        intervention: in place of a model, what structural attention is made from in the paper's network: a
            name ("mf", "sc", "fs", ...), several joined by a plus, or "auto" (validation nodes choose). An
            `Intervention` of your own has no name that the learner could build it by: the paper's network is
            put around a copy, with the same settings, and trained by the same `fit`, on the full graph.
        strategy: with an intervention: "implicit" (default) or "explicit"; with one of your own also
            "structural".
        hidden, heads, num_layers, dropout: of the network; None: as the model usually has it. Some models do
            not have all of them; heads and num_layers by themselves ask for attention (cat-i-mf).
        epochs, patience, lr, weight_decay, penalty_weight, row_normalise: as in `TrainConfig`; None: as
            recommended for the model.
        settings, train: any other setting of the network and of training, by name.
        class_weight: "balanced", or a dict of numbers by class: how much labels of a class count in training.
            An ensemble is chosen by balanced accuracy then, unless `scoring` says otherwise.
        scoring, minutes, trials, single: of the ensemble: the metric it is chosen by, the most time or the
            most trainings it may take, and whether only its best member is kept; see `conjoint.learn`.
        validation_fraction: share of each class's labels that choose the epoch and the model instead of
            training. None: every label trains; an ensemble is judged by folds, and a named model is trained
            twice, first without some labels, which choose its epochs and judge it.
        n_neighbors, metric: the nearest-neighbour graph that stands in where no graph is given, and that
            links new nodes to those of training.
        random_state: an int is the seed, and gives the same bits on every fit.
        verbose: 1 prints a line for each training of an ensemble, or for each tenth epoch; 2 every epoch.

    Attributes:
        classes_: the classes, sorted.
        transduction_: the class of every node of the training graph.
        label_distributions_: the class probabilities behind it. [nodes, classes]
        embedding_: the last hidden layer. [nodes, hidden units]
        attention_: table of src, dst, layer, head, feature, structural, conjoint.
        network_, model_: the trained network, and its name (None around an intervention of your own).
        choice_: how "auto" chose an intervention (`Choice`), else None.
        portfolio_: how the ensemble came about (`Portfolio`), None if a model was named.
        estimate_: every metric on labels by trainings that did not have them; None if there are no such.
        history_: one row per epoch; of two trainings, the first, which knows validation labels.
        n_iter_: epochs trained.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1], [0, 2], [1, 0], [2, 0]])
    >>> edges = [[0, 2], [1, 3]]
    >>> CATClassifier(random_state=0).fit(X, [0, -1, 1, -1], graph=edges).predict(X)
    array([0, 0, 1, 1])
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        graph: Any = None,
        validation: Any = None,
        progress: OnEpoch | None = None,
    ) -> "CATClassifier":
        """Train on the labelled rows of X; the others take part in the graph alone.

        Args:
            X: features, one row per node: array, SciPy sparse, pandas.
            y: one label per row; -1, NaN, None and "" mean unlabelled.
            sample_weight: how much each row's label counts in training; members of an ensemble are chosen
                without it.
            graph: which rows are linked: a square SciPy matrix or array; a list of pairs; a table of edges
                (pandas, polars); an edge index of shape [2, edges] (NumPy or torch); a NetworkX graph; or
                None for the nearest neighbours in X. Read as undirected.
            validation: labelled rows that choose epoch and model, in place of `validation_fraction`: indices,
                or a mask with an entry per row.
            progress: called with each epoch's row; a training ends when it returns True. See `conjoint.fit`.
        """
        if y is None:
            raise InputError("y: this CATClassifier requires y to be passed, but the target y is None")
        nodes = self._read(X, graph)
        self.classes_, codes = encode(y)
        check_consistent_length(X, codes)
        answers = self._train(nodes, self.classes_, codes, self._seed(), validation, sample_weight, progress)
        self.label_distributions_ = answers.probabilities
        self.transduction_ = self.classes_[answers.probabilities.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any, *, graph: Any = None) -> npt.NDArray[np.float32]:
        """Class probabilities, in the order of `classes_`. See `predict` for which graph is used."""
        return self._answers(X, graph).probabilities

    def predict(self, X: Any, *, graph: Any = None) -> npt.NDArray[Any]:
        """The class of each row.

        A row that was in the training X gets the answer of its node. A new node is linked to its
        `n_neighbors` nearest training nodes, unless `graph` says more: a square graph between the rows of X,
        or a SciPy matrix of shape [rows, training nodes + rows] that links them to both.
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
