"""Interventions by the short names that models, estimators and the command line use."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...errors import InputError
from ..names import KINDS as KINDS
from ..names import kinds
from . import computed, factors
from .base import Constant, EdgeScores, Intervention, Several


def make(name: str, num_nodes: int, classes: int, **choices: Any) -> Intervention:
    """The intervention called `name`; a plus joins several, each of which takes the `choices` that it has."""
    made = []
    for part, kind in zip(name.split("+"), kinds(name), strict=True):
        given = {key: choices[key] for key in kind.has if choices.get(key) is not None}
        sizes = {"num_nodes": num_nodes, "rank": classes} if kind.per_node else {}
        made.append(CLASSES[part](**sizes | given))
    return made[0] if len(made) == 1 else Several(made, name.split("+"))


def as_intervention(given: Intervention | Tensor | str | None) -> Intervention | None:
    """What a layer or a network was given: an intervention, one number per edge, a name, or none."""
    if isinstance(given, Tensor):
        return EdgeScores(given)
    if not isinstance(given, str):
        return given
    for part, kind in zip(given.split("+"), kinds(given), strict=True):
        if kind.per_node:
            raise InputError(
                f"intervention: {part!r} has a row of factors per node, so it needs to know how many there "
                f"are; pass intervention={CLASSES[part].__name__}(num_nodes, rank); the number of classes is "
                "a good rank"
            )
    return make(given, 0, 0)


# One for each of KINDS.
CLASSES: dict[str, Callable[..., Intervention]] = {
    "mf": factors.MatrixFactorization,
    "sc": factors.SelfExpression,
    "fs": computed.FeatureSimilarity,
    "zero": Constant,
    "random": computed.RandomSimilarity,
    "spectral": computed.SpectralSimilarity,
    "smooth": computed.SmoothedSimilarity,
    "trust": computed.TrustedEdges,
    "ppr": computed.DiffusionSimilarity,
    "jaccard": computed.JaccardSimilarity,
    "adamic": computed.AdamicAdarSimilarity,
    "nmf": factors.NormalisedFactorization,
    "nsc": factors.NormalisedExpression,
}
