"""How much each member of an ensemble counts: greedy selection on nodes that it was not trained on.

After "Ensemble selection from libraries of models" (Caruana et al., 2004): the member whose addition helps
most is added, again and again, with repetition. With few nodes one choice is mostly luck, so it is made on
many random samples of them and averaged: where members differ by less than luck, they share the weight. For
accuracy, log-loss says what helps: right and wrong alone tell too little of a node to choose by.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..training.metrics import log_loss, merit

Array = npt.NDArray[Any]
PICKS, SAMPLES, MOST_NODES = 12, 20, 4000
LEAST_SHARE = 0.03  # a member that counts for less is left out
SURE = 0.9  # share of the samples in which one member alone must be ahead


def weigh(shares: Sequence[Array], y: Array, metric: str = "accuracy", seed: int = 0) -> Array:
    """Weights of sum 1 for members with these probabilities. k x [nodes, classes], [nodes] -> [k]"""
    if len(shares) == 1:
        return np.ones(1)
    stacked = np.stack(shares)
    rng = np.random.default_rng(seed)
    samples = [rng.integers(0, len(y), min(len(y), MOST_NODES)) for _ in range(SAMPLES)]
    guide = "log-loss" if metric == "accuracy" else metric
    total = np.sum([_greedy(stacked[:, nodes], y[nodes], guide) for nodes in samples], axis=0)
    total /= total.sum()
    total[total < min(LEAST_SHARE, total.max())] = 0.0
    weights = total / total.sum()
    # Members that are good alone may be worse together: an ensemble may be one network.
    best = int(np.argmax([merit(metric, y, one) for one in shares]))
    joined = np.tensordot(weights, stacked, axes=1)
    ahead = [merit(metric, y[n], stacked[best, n]) > merit(metric, y[n], joined[n]) for n in samples]
    return np.eye(len(shares))[best] if np.mean(ahead) >= SURE else weights


def _greedy(shares: Array, y: Array, metric: str) -> Array:
    """How often each member was picked until nothing helps any more. [k, nodes, classes] -> [k]"""
    counts, mean = np.zeros(len(shares)), np.zeros_like(shares[0])
    best = (-np.inf, -np.inf)
    for step in range(1, PICKS + 1):
        tried = [mean + (share - mean) / step for share in shares]
        worth = [(merit(metric, y, p), -log_loss(y, p)) for p in tried]
        pick = max(range(len(tried)), key=worth.__getitem__)
        if worth[pick] <= best:
            break
        best, mean = worth[pick], tried[pick]
        counts[pick] += 1
    return counts


def temperature(p: Array, y: Array) -> float:
    """T for which p^(1/T) has the lowest log-loss."""
    from scipy.optimize import minimize_scalar  # a tenth of a second that no first epoch need wait for

    log_p = np.log(np.maximum(p, 1e-12))

    def loss(log_t: float) -> float:
        z = log_p / np.exp(log_t)
        z = z - np.logaddexp.reduce(z, axis=1, keepdims=True)
        return float(-z[np.arange(len(y)), y].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-1.5, 1.5), method="bounded").x))
