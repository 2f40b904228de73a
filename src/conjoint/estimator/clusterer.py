"""Clustering of nodes with scikit-learn's interface, with a few labels or with none."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length

from ..errors import InputError, check_whole
from ..graph.graph import Graph
from ..graph.proximity import smoothed_features
from .base import OF_TRAINING, Answers, GraphEstimator
from .labels import Codes, encode, labelled

SURE = 0.5  # share of each cluster that may label the network


@dataclass(kw_only=True, eq=False, repr=False)
class CATClusterer(ClusterMixin, GraphEstimator):
    """A network that divides the nodes of a graph into groups.

    With a few labels in `y` it does the paper's semi-supervised clustering: every node goes to one of the
    labelled classes. Without labels it makes its own first: k-means on features averaged over `hops` steps
    of the graph; the half of each cluster that is surest of its place labels the network, which then decides
    about all nodes.

    Args:
        n_clusters: how many groups to look for without labels; with labels, the classes decide.
        hops: steps of the graph that features are averaged over before k-means.
        model, ..., random_state: as in `CATClassifier`.

    Attributes:
        labels_: the group of every node: a class of `y`, or numbers from 0 without labels. A cluster that the
            network leaves empty is dropped, so there may be fewer than `n_clusters`.
        classes_: the groups there are.
        embedding_, attention_, network_, model_, choice_, history_, n_iter_: as in `CATClassifier`.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    n_clusters: int = 8
    hops: int = 5

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, validation: Any = None) -> "CATClusterer":
        """Divide the rows of X. `y`: labels of some rows (-1, NaN, None and "" = none) or None for no labels.

        `graph` and, where there are labels, `validation` are as in `CATClassifier.fit`.
        """
        nodes, seed = self._read(X, graph), self._seed()
        if y is not None and labelled(y)[1].any():
            check_consistent_length(X, y)
            self.classes_, codes = encode(y)
            answers = self._train(nodes, self.classes_, codes, seed, validation)
            self._groups = np.arange(len(self.classes_))
        else:
            if validation is not None:
                raise InputError(
                    "validation: no row has a label, so none can choose; leave it out, or give y"
                )
            rule = self._given(OF_TRAINING, self.train).get("row_normalise", "auto")
            codes = first_clusters(nodes, self.n_clusters, self.hops, rule, seed)
            answers = self._train(nodes, np.unique(codes[codes >= 0]), codes, seed, None)
            self._groups = np.unique(answers.probabilities.argmax(axis=1))
            self.classes_ = np.arange(len(self._groups))
        self.labels_ = self._decide(answers)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, *, graph: Any = None, validation: Any = None
    ) -> npt.NDArray[Any]:
        """Fit, and return `labels_`."""
        return self.fit(X, y, graph=graph, validation=validation).labels_

    def predict(self, X: Any, *, graph: Any = None) -> npt.NDArray[Any]:
        """The group of each row, with `graph` and new nodes as in `CATClassifier.predict`."""
        return self._decide(self._answers(X, graph))

    def _decide(self, answers: Answers) -> npt.NDArray[Any]:
        return self.classes_[answers.probabilities[:, self._groups].argmax(axis=1)]


def first_clusters(graph: Graph, count: Any, hops: int, row_normalise: str, seed: int) -> Codes:
    """k-means on smoothed features; a code for the surer half of each cluster, -1 for the other nodes.

    A node is sure of its place if the next centre is much farther than its own. Each cluster keeps at least
    one node.
    """
    nodes = graph.num_nodes
    check_whole(
        "n_clusters", count, 1, nodes, f"n_samples={nodes}, so give a whole number from 1 to the rows of X"
    )
    x = graph.inputs(row_normalise, torch.empty(0))
    smooth = smoothed_features(x, graph.edge_index, nodes, hops=int(hops), seed=seed).numpy()
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the clusters without members are dropped below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(int(count), n_init=10, random_state=seed).fit(smooth)
    near = np.sort(fitted.transform(smooth), axis=1)
    margin = near[:, 1] - near[:, 0] if count > 1 else -near[:, 0]
    return _surer_part(fitted.labels_, margin)


def _surer_part(clusters: npt.NDArray[Any], margin: npt.NDArray[np.float32]) -> Codes:
    codes = np.full(len(clusters), -1, dtype=np.int64)
    for code, cluster in enumerate(np.unique(clusters)):  # equal rows may fill fewer clusters than asked for
        members = np.flatnonzero(clusters == cluster)
        surest = members[np.argsort(-margin[members], kind="stable")]
        codes[surest[: max(1, round(SURE * len(members)))]] = code
    return codes
