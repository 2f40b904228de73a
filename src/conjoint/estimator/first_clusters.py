"""Clusters to start from where nobody has labelled anything."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..data.tidy import pack_features
from ..errors import InputError
from ..graph.smoothing import smoothed_features
from ..graph.sparse import row_normalise
from ..training import TrainConfig
from .graphs import Graph
from .network import Nodes

SURE = 0.5  # share of each cluster that may label the network


def first_clusters(
    nodes: Nodes, graph: Graph, count: Any, hops: int, config: TrainConfig
) -> npt.NDArray[np.int64]:
    """k-means on smoothed features; a code for the surer half of each cluster, -1 for the other nodes.

    A node is sure of its place if the next centre is much farther than its own. Each cluster keeps at least
    one node.
    """
    num_nodes = nodes.x.shape[0]
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= num_nodes:
        raise InputError(
            f"n_clusters={count!r} with n_samples={num_nodes}: give a whole number from 1 to the number of "
            "rows of X"
        )
    x = pack_features(nodes.x, nodes.is_sparse)
    x = row_normalise(x) if config.row_normalise == "always" else x
    smooth = smoothed_features(x, graph.edge_index, num_nodes, hops=int(hops), seed=config.seed).numpy()
    return _surer_part(*_k_means(smooth, int(count), config.seed))


def _k_means(
    vectors: npt.NDArray[np.float32], count: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """(cluster of each row, how much farther the next centre is than its own)."""
    search = KMeans(count, n_init=10, random_state=seed)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the clusters without members are dropped below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = search.fit(vectors)
    near = np.sort(fitted.transform(vectors), axis=1)
    margin = near[:, 1] - near[:, 0] if count > 1 else -near[:, 0]
    return fitted.labels_.astype(np.int64), margin


def _surer_part(clusters: npt.NDArray[np.int64], margin: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    codes = np.full(len(clusters), -1, dtype=np.int64)
    for code, cluster in enumerate(np.unique(clusters)):  # equal rows may fill fewer clusters than asked for
        members = np.flatnonzero(clusters == cluster)
        surest = members[np.argsort(-margin[members], kind="stable")]
        codes[surest[: max(1, round(SURE * len(members)))]] = code
    return codes
