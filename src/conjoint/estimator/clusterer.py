"""Clustering of nodes with scikit-learn's interface, with a few labels or with none."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin
from sklearn.utils import check_consistent_length

from ..nn.interventions import Intervention
from .base import GraphEstimator
from .first_clusters import first_clusters
from .labels import encode, labelled, require_two
from .network import Answers


class CATClusterer(ClusterMixin, GraphEstimator):
    """Conjoint attention network that divides the nodes of a graph into groups.

    With a few labels in `y` it does the paper's semi-supervised clustering: every node goes to one of the
    labelled classes. Without labels it makes its own first: k-means on features averaged over `hops` steps
    of the graph; the half of each cluster that is surest of its place labels the network, which then decides
    about all nodes.

    Args:
        n_clusters: how many groups to look for without labels; with labels, the classes decide.
        hops: steps of the graph that features are averaged over before k-means.
        intervention, ..., random_state: as in `CATClassifier`.

    Attributes:
        labels_: the group of every node: a class of `y`, or numbers from 0 without labels. A cluster that the
            network leaves empty is dropped, so there may be fewer than `n_clusters`.
        classes_: the groups there are.
        embedding_, attention_, network_, history_, n_iter_, n_features_in_, feature_names_in_: as in
            `CATClassifier`.
    """

    def __init__(
        self,
        *,
        n_clusters: int = 8,
        hops: int = 5,
        intervention: str | Intervention | None = "mf",
        strategy: str = "implicit",
        hidden: int = 8,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.6,
        epochs: int = 200,
        patience: int = 50,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        penalty_weight: float = 0.01,
        validation_fraction: float = 0.2,
        row_normalise: str = "auto",
        n_neighbors: int = 10,
        metric: str = "euclidean",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            intervention=intervention,
            strategy=strategy,
            hidden=hidden,
            heads=heads,
            num_layers=num_layers,
            dropout=dropout,
            epochs=epochs,
            patience=patience,
            lr=lr,
            weight_decay=weight_decay,
            penalty_weight=penalty_weight,
            validation_fraction=validation_fraction,
            row_normalise=row_normalise,
            n_neighbors=n_neighbors,
            metric=metric,
            random_state=random_state,
        )
        self.n_clusters = n_clusters
        self.hops = hops

    def fit(self, X: Any, y: Any = None, *, graph: Any = None) -> "CATClusterer":
        """Divide the rows of X. `y`: labels of some rows (-1, NaN, None and "" = none) or None for no labels.

        `graph` is as in `CATClassifier.fit`.
        """
        nodes, links = self._read(X, graph)
        seed = self._seed()
        if y is not None and labelled(y)[1].any():
            check_consistent_length(nodes.x, y)
            self.classes_, codes = encode(y)
            require_two(self.classes_)
            answers = self._train(nodes, links, codes, seed)
            self._groups = np.arange(len(self.classes_))
        else:
            codes = first_clusters(nodes, links, self.n_clusters, self.hops, self._make_config(nodes, seed))
            answers = self._train(nodes, links, codes, seed)
            self._groups = np.unique(answers.probabilities.argmax(axis=1))
            self.classes_ = np.arange(len(self._groups))
        self.labels_ = self._decide(answers)
        return self

    def fit_predict(self, X: Any, y: Any = None, *, graph: Any = None) -> npt.NDArray[Any]:
        """Fit, and return `labels_`."""
        return self.fit(X, y, graph=graph).labels_

    def predict(self, X: Any, *, graph: Any = None) -> npt.NDArray[Any]:
        """The group of each row, with `graph` and new rows as in `CATClassifier.predict`."""
        return self._decide(self._answers(X, graph))

    def _decide(self, answers: Answers) -> npt.NDArray[Any]:
        return self.classes_[answers.probabilities[:, self._groups].argmax(axis=1)]
