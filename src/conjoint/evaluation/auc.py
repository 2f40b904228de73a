"""How well a score tells two groups apart, and how sure one can be of that from few examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% confidence interval."""

    value: float
    low: float
    high: float


def auc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> Interval | None:
    """Chance that a positive example scores above a negative one, ties counting half; None without either.

    The variance is Hanley and McNeil's (Radiology 1982). It is taken on the logit scale, at an estimate drawn
    half an example towards 1/2, so that a handful of examples in perfect order still leaves doubt.
    """
    from scipy.stats import rankdata

    values, is_positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    ups, downs = int(is_positive.sum()), int((~is_positive).sum())
    if ups == 0 or downs == 0:
        return None
    above = float(rankdata(values)[is_positive].sum()) - ups * (ups + 1) / 2
    found = above / (ups * downs)
    few = min(ups, downs)
    drawn = (found * few + 0.5) / (few + 1)
    q1, q2 = drawn / (2 - drawn), 2 * drawn**2 / (1 + drawn)
    variance = drawn * (1 - drawn) + (ups - 1) * (q1 - drawn**2) + (downs - 1) * (q2 - drawn**2)
    half = 1.96 * np.sqrt(variance / (ups * downs)) / (drawn * (1 - drawn))
    middle = np.log(drawn / (1 - drawn))
    low, high = (1 / (1 + np.exp(-(middle + sign * half))) for sign in (-1, 1))
    return Interval(found, min(float(low), found), max(float(high), found))


def share(hits: int, count: int) -> Interval | None:
    """A share with Wilson's interval; None of nothing."""
    if count == 0:
        return None
    p, z = hits / count, 1.96
    middle = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return Interval(p, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def random_share(edges: npt.NDArray[Any], pairs: npt.NDArray[Any], cut: float = 0.5) -> float:
    """At most what share of `edges` is drawn as `pairs` are, by their similarities (Storey's estimate).

    An edge's p-value is the share of random pairs that are at least as alike, ties counting half. Edges at
    random have uniform p-values; the others' are small, so those above `cut` are counted as random ones.
    """
    if len(edges) == 0 or len(pairs) == 0:
        return 0.0
    order = np.sort(pairs)
    below, upto = (np.searchsorted(order, edges, side=side) for side in ("left", "right"))
    p = 1.0 - (below + upto) / (2 * len(pairs))
    at_cut = np.abs(p - cut) < 1e-12
    # Where the pairs' similarities are tied, part of them stand at the cut itself: compare like with like.
    own = 1.0 - (np.searchsorted(order, order, "left") + np.searchsorted(order, order, "right")) / (
        2 * len(pairs)
    )
    expected = float(np.mean(own > cut) + 0.5 * np.mean(np.abs(own - cut) < 1e-12))
    found = float(np.mean(p > cut) + 0.5 * np.mean(at_cut))
    return min(1.0, found / expected) if expected > 0 else 1.0
