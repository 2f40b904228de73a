"""Neighbourhoods that cannot be told apart: the conditions of Theorems 1 and 2, and pairs that meet them."""

import numpy as np

from conjoint.errors import InputError
from conjoint.nn import checks

from .neighbourhoods import (
    STRATEGIES,
    Floats,
    Integers,
    Layer,
    Neighbourhood,
    Strategy,
    feature_attention,
    structural_attention,
)

Pair = tuple[Neighbourhood, Neighbourhood]


def condition_holds(
    strategy: Strategy, one: Neighbourhood, two: Neighbourhood, layer: Layer, tolerance: float = 1e-10
) -> bool:
    """The condition, as the paper states it, under which the aggregator without self term maps both alike.

    Same centre, same ground set, and on every x of it
    - gat: mu_1(x) / mu_2(x) is the same;
    - implicit (Theorem 1): F_1(x) - F_2(x) = r_s / r_f (S_2(x) - S_1(x)), with F and S the sums of f and s;
    - explicit (Theorem 2): the sum of exp(C) in X_1 is q > 0 times that in X_2, with one q for all x.
    """
    checks.one_of("strategy", strategy, STRATEGIES)
    if one.centre != two.centre:
        return False
    mu_1, mu_2 = one.counts(layer.num_features), two.counts(layer.num_features)
    ground = mu_1 > 0
    if not np.array_equal(ground, mu_2 > 0):
        return False
    if strategy == "gat":
        return _proportional(mu_1, mu_2)
    if strategy == "implicit":
        f_1, f_2 = (hood.totals(feature_attention(hood, layer), layer.num_features) for hood in (one, two))
        s_1, s_2 = (hood.totals(structural_attention(hood), layer.num_features) for hood in (one, two))
        return np.allclose((1.0 - layer.r_s) * (f_1 - f_2), layer.r_s * (s_2 - s_1), rtol=0.0, atol=tolerance)
    phi_1, phi_2 = (hood.totals(np.exp(hood.scores), layer.num_features)[ground] for hood in (one, two))
    q = phi_2 / phi_1
    return np.allclose(q, q[0], rtol=tolerance, atol=0.0)


def colliding_pair(
    strategy: Strategy, layer: Layer, rng: np.random.Generator, *, same_size: bool = False
) -> Pair:
    """Two neighbourhoods with different feature multisets that meet the condition of `strategy`.

    Their sizes differ, or agree if `same_size`, which "gat" cannot offer: proportional multisets of one size
    are one multiset.
    """
    checks.one_of("strategy", strategy, STRATEGIES)
    if strategy == "gat" and same_size:
        raise InputError("same_size: GAT confuses no two multisets of one size; pass same_size=False")
    ground = rng.permutation(layer.num_features)[: rng.integers(2, layer.num_features + 1)]
    for _ in range(1000):
        mu_1 = rng.integers(1, 5, size=ground.size)
        mu_2 = mu_1 * rng.integers(2, 5) if strategy == "gat" else rng.integers(1, 5, size=ground.size)
        if np.array_equal(mu_1, mu_2) or (mu_1.sum() == mu_2.sum()) != same_size:
            continue
        # ground[0] is the centre's feature in both, and the centre comes first.
        one, two = np.repeat(ground, mu_1), np.repeat(ground, mu_2)
        if strategy == "implicit" and _structural_shift(one, two, layer) is None:
            continue
        return colliding_scores(strategy, one, two, layer, rng)
    raise InputError(f"r_s: at {layer.r_s} no scores offset the feature attention of these logits; raise it")


def colliding_scores(
    strategy: Strategy, one: Integers, two: Integers, layer: Layer, rng: np.random.Generator
) -> Pair:
    """Score the members of two given multisets, on one centre and ground set, so that the condition holds.

    Scores can do that to any two such multisets under the explicit strategy, and under the implicit one if
    r_f times the total variation between F_1 and F_2 is below r_s. Under GAT they have no say.
    """
    checks.one_of("strategy", strategy, STRATEGIES)
    if one[0] != two[0] or not np.array_equal(np.unique(one), np.unique(two)):
        raise InputError("one and two: they need the same centre (the first member) and the same ground set")
    if strategy == "gat":
        if not _proportional(np.bincount(one), np.bincount(two)):
            raise InputError("one and two: GAT tells them apart; give multiplicities that are proportional")
        return Neighbourhood(one, rng.normal(size=one.size)), Neighbourhood(two, rng.normal(size=two.size))
    present = np.bincount(one, minlength=layer.num_features) > 0
    share = np.zeros(layer.num_features)
    share[present] = rng.dirichlet(np.full(present.sum(), 3.0))
    if strategy == "explicit":
        return Neighbourhood(one, _spread(one, share, rng)), Neighbourhood(two, _spread(two, share, rng))
    shift = _structural_shift(one, two, layer)
    if shift is None:
        raise InputError(
            f"r_s: {layer.r_s} is too small for scores to offset the feature attention; raise it"
        )
    least = np.maximum(-shift, 0.0)  # what S_1 needs so that S_2 = S_1 + shift stays positive
    s_1 = least + (1.0 - least.sum()) * share
    return Neighbourhood(one, _spread(one, s_1, rng)), Neighbourhood(two, _spread(two, s_1 + shift, rng))


def _proportional(mu_1: Integers, mu_2: Integers) -> bool:
    return np.array_equal(mu_1 * mu_2.sum(), mu_2 * mu_1.sum())


def _structural_shift(one: Integers, two: Integers, layer: Layer) -> Floats | None:
    """S_2 - S_1 of Theorem 1's condition; None if no two distributions are that far apart. [features]"""
    f_1, f_2 = (
        hood.totals(feature_attention(hood, layer), layer.num_features)
        for hood in (Neighbourhood(one, np.zeros(one.size)), Neighbourhood(two, np.zeros(two.size)))
    )
    shift = (1.0 - layer.r_s) / layer.r_s * (f_1 - f_2)
    return shift if np.maximum(shift, 0.0).sum() < 1.0 else None


def _spread(features: Integers, total: Floats, rng: np.random.Generator) -> Floats:
    """Scores whose exponentials add up to `total[x]` (times any constant) over the members with feature x."""
    part = rng.uniform(0.5, 2.0, size=features.size)
    part /= np.bincount(features, weights=part)[features]
    return np.log(part * total[features]) + rng.normal()
