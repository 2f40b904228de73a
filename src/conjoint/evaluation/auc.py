"""How well a score tells two groups apart, and how sure one can be of that from few examples."""

from dataclasses import dataclass

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
