"""Interventions by the short names that models, estimators and the command line use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import InputError
from .base import Constant, Intervention
from .computed import (
    DiffusionSimilarity,
    RandomSimilarity,
    SmoothedSimilarity,
    SpectralSimilarity,
    TrustedEdges,
)
from .factors import MatrixFactorization, SelfExpression
from .features import FeatureSimilarity
from .normalised import NormalisedExpression, NormalisedFactorization
from .overlap import AdamicAdarSimilarity, JaccardSimilarity
from .several import Several


@dataclass(frozen=True)
class Choices:
    """What can be chosen about a named intervention, where it has that choice; None: as it usually is."""

    rank: int | None = None
    temperature: float | None = None
    learn_temperature: bool | None = None

    def given(self) -> dict[str, float | bool]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Kind:
    about: str
    make: Callable[[int, int, Choices], Intervention]  # nodes, classes, choices
    has: tuple[str, ...] = ()  # the choices that it has
    control: bool = False  # knows nothing, on purpose
    learns: bool = False  # its temperature, unless told otherwise: nobody knows the scale beforehand


def make(name: str, num_nodes: int, classes: int, **choices: Any) -> Intervention:
    """The intervention called `name` for a graph of so many nodes and classes; several joined by a plus.

    `choices` are those of `Choices`; of several, each takes the ones that it has.
    """
    made = [
        kind.make(num_nodes, classes, Choices(**{key: choices[key] for key in kind.has if key in choices}))
        for kind in kinds(name)
    ]
    return made[0] if len(made) == 1 else Several(made, name.split("+"))


def kinds(name: str) -> list[Kind]:
    """The entries of `KINDS` that a name like 'smooth' or 'smooth+spectral' means."""
    parts = name.split("+")
    for part in parts:
        if part not in KINDS:
            raise InputError(f"intervention {part!r} is not known; choose one of {', '.join(KINDS)}")
    if len(set(parts)) < len(parts):
        raise InputError(f"intervention {name!r} names one twice; name each once")
    return [KINDS[part] for part in parts]


def _factors(kind: Callable[..., Intervention]) -> Callable[..., Intervention]:
    return lambda nodes, classes, choices: kind(nodes, **{"rank": classes, **choices.given()})


def _computed(kind: Callable[..., Intervention]) -> Callable[..., Intervention]:
    return lambda nodes, classes, choices: kind(**choices.given())


TEMPERED = ("temperature", "learn_temperature")
KINDS: dict[str, Kind] = {
    "mf": Kind("matrix factorisation", _factors(MatrixFactorization), ("rank",)),
    "sc": Kind("self-expression", _factors(SelfExpression), ("rank",)),
    "fs": Kind("feature similarity", lambda *_: FeatureSimilarity()),
    "zero": Kind("every edge scored 0", lambda *_: Constant(), control=True),
    "random": Kind("random scores", _computed(RandomSimilarity), TEMPERED, control=True),
    "spectral": Kind(
        "similarity of leading eigenvectors", _computed(SpectralSimilarity), ("rank", *TEMPERED)
    ),
    "smooth": Kind("similarity of smoothed features", _computed(SmoothedSimilarity), ("rank", *TEMPERED)),
    "trust": Kind("edges that look unlike random pairs", _computed(TrustedEdges), ("rank",)),
    "ppr": Kind(
        "proximity by personalised PageRank", _computed(DiffusionSimilarity), ("rank", *TEMPERED), learns=True
    ),
    "jaccard": Kind("shared neighbours", _computed(JaccardSimilarity), TEMPERED, learns=True),
    "adamic": Kind(
        "shared neighbours, rare ones first", _computed(AdamicAdarSimilarity), TEMPERED, learns=True
    ),
    "nmf": Kind(
        "matrix factorisation, normalised",
        _factors(NormalisedFactorization),
        ("rank", *TEMPERED),
        learns=True,
    ),
    "nsc": Kind(
        "self-expression, normalised", _factors(NormalisedExpression), ("rank", *TEMPERED), learns=True
    ),
}
