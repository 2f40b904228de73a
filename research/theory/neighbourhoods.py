"""Eq. 4-9 for one neighbourhood, as the paper's theorems see it: a centre, a multiset of features, scores.

NumPy on purpose: nothing here shares code with the layer that it is compared to.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from conjoint.errors import InputError
from conjoint.nn import checks

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Strategy = Literal["gat", "implicit", "explicit"]
STRATEGIES = ("gat", "implicit", "explicit")


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """One node's N_i: the multiset X = (S, mu) of the features in it, and a score for each member.

    Features are numbers of a table, which is all that "countable" asks for. The centre is a member of its own
    neighbourhood and comes first.
    """

    features: Integers  # [members]
    scores: Floats  # [members]: C_cy

    def __post_init__(self) -> None:
        if self.features.ndim != 1 or self.features.size == 0 or self.features.shape != self.scores.shape:
            raise InputError(
                f"features and scores: expected one of each per member, at least the centre, got shapes "
                f"{self.features.shape} and {self.scores.shape}"
            )

    @property
    def centre(self) -> int:
        return int(self.features[0])

    @property
    def size(self) -> int:
        """|X| = |N_i|."""
        return self.features.size

    def counts(self, num_features: int) -> Integers:
        """mu, with 0 for features outside S. [features]"""
        return np.bincount(self.features, minlength=num_features)

    def totals(self, per_member: Floats, num_features: int) -> Floats:
        """The sums over y = x, y in X that the theorems are written in. [features]"""
        return np.bincount(self.features, per_member, num_features).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Layer:
    """What a layer has learnt. The theorems let g and the logits vary freely; `gat_logits` ties them."""

    g: Floats  # [features, channels]: g(x); W h in the layer
    logits: Floats  # [features, features]: m_cx, centre c, neighbour x
    r_s: float = 0.5  # r_f = 1 - r_s
    eps: float = 0.0  # 0 leaves the self term out

    def __post_init__(self) -> None:
        if self.num_features < 2 or self.logits.shape != (self.num_features, self.num_features):
            raise InputError(
                f"logits: expected a square table over the {self.num_features} features of g, at least 2, "
                f"got shape {self.logits.shape}"
            )
        if not (0.0 < self.r_s < 1.0 and 0.0 <= self.eps < 1.0):
            raise InputError(f"r_s and eps: {self.r_s} and {self.eps}; choose 0 < r_s < 1 and 0 <= eps < 1")

    @property
    def num_features(self) -> int:
        return self.g.shape[0]


def gat_logits(g: Floats, att_centre: Floats, att_neighbour: Floats, slope: float = 0.2) -> Floats:
    """GAT's m_cx = LeakyReLU(<a_centre, g(c)> + <a_neighbour, g(x)>). [features, features]"""
    raw = (g @ att_centre)[:, None] + (g @ att_neighbour)[None, :]
    return np.where(raw > 0.0, raw, slope * raw)


def feature_attention(hood: Neighbourhood, layer: Layer) -> Floats:
    """Eq. 4: f_cy. [members]"""
    return _softmax(layer.logits[hood.centre, hood.features])


def structural_attention(hood: Neighbourhood) -> Floats:
    """Eq. 5: s_cy. [members]"""
    return _softmax(hood.scores)


def attention(strategy: Strategy, hood: Neighbourhood, layer: Layer) -> Floats:
    """Eq. 4 (gat), Eq. 7 (implicit) or Eq. 8 (explicit): alpha_cy. [members]"""
    checks.one_of("strategy", strategy, STRATEGIES)
    f = feature_attention(hood, layer)
    if strategy == "gat":
        return f
    s = structural_attention(hood)
    if strategy == "implicit":
        return (1.0 - layer.r_s) * f + layer.r_s * s
    return f * s / (f * s).sum()


def aggregate(strategy: Strategy, hood: Neighbourhood, layer: Layer) -> Floats:
    """Eq. 9: h(c, X) = sum_y alpha_cy g(y) + eps / |X| g(c). [channels]"""
    alpha = attention(strategy, hood, layer)
    return alpha @ layer.g[hood.features] + layer.eps / hood.size * layer.g[hood.centre]


def mass(strategy: Strategy, hood: Neighbourhood, layer: Layer) -> Floats:
    """What each g(x) is multiplied with in Eq. 9: h(c, X) = sum_x mass(x) g(x). [features]

    Two neighbourhoods agree for every g, logits held fixed, exactly if their masses agree.
    """
    out = hood.totals(attention(strategy, hood, layer), layer.num_features)
    out[hood.centre] += layer.eps / hood.size
    return out


def _softmax(logits: Floats) -> Floats:
    weight = np.exp(logits - logits.max())
    return weight / weight.sum()
