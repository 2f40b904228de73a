"""Interventions by the short names that models, estimators and the command line use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...errors import InputError
from . import computed, factors
from .base import Constant, EdgeScores, Intervention, Several


@dataclass(frozen=True)
class Kind:
    about: str
    make: Callable[..., Intervention]
    has: tuple[str, ...] = ()  # what can be chosen about it: rank, temperature, learn_temperature
    control: bool = False  # carries no information, on purpose
    learns: bool = False  # its temperature by default: its scale is not known beforehand
    per_node: bool = False  # has a row of factors per node, by default as many columns as classes


def make(name: str, num_nodes: int, classes: int, **choices: Any) -> Intervention:
    """The intervention called `name`; a plus joins several, each of which takes the `choices` that it has."""
    made = []
    for kind in kinds(name):
        given = {key: choices[key] for key in kind.has if choices.get(key) is not None}
        sizes = {"num_nodes": num_nodes, "rank": classes} if kind.per_node else {}
        made.append(kind.make(**sizes | given))
    return made[0] if len(made) == 1 else Several(made, name.split("+"))


def as_intervention(given: Intervention | Tensor | str | None) -> Intervention | None:
    """What a layer or a network was given: an intervention, one number per edge, a name, or none."""
    if isinstance(given, Tensor):
        return EdgeScores(given)
    if not isinstance(given, str):
        return given
    for part, kind in zip(given.split("+"), kinds(given), strict=True):
        if kind.per_node:
            name = kind.make.__name__
            raise InputError(
                f"intervention: {part!r} has a row of factors per node, so it needs to know how many there "
                f"are; pass intervention={name}(num_nodes, rank)"
                "; the number of classes is a good rank"
            )
    return make(given, 0, 0)


def kinds(name: str) -> list[Kind]:
    """The entries of `KINDS` that a name like 'smooth' or 'smooth+spectral' means."""
    parts = name.split("+")
    for part in parts:
        if part not in KINDS:
            raise InputError(f"intervention {part!r} is not known; choose one of {', '.join(KINDS)}")
    if len(set(parts)) < len(parts):
        raise InputError(f"intervention {name!r} names one twice; name each once")
    return [KINDS[part] for part in parts]


TEMPERED = ("temperature", "learn_temperature")
ALL = ("rank", *TEMPERED)
KINDS: dict[str, Kind] = {
    "mf": Kind("matrix factorisation", factors.MatrixFactorization, ("rank",), per_node=True),
    "sc": Kind("self-expression", factors.SelfExpression, ("rank",), per_node=True),
    "fs": Kind("feature similarity", computed.FeatureSimilarity),
    "zero": Kind("every edge scored 0", Constant, control=True),
    "random": Kind("random scores", computed.RandomSimilarity, TEMPERED, control=True),
    "spectral": Kind("similarity of leading eigenvectors", computed.SpectralSimilarity, ALL),
    "smooth": Kind("similarity of smoothed features", computed.SmoothedSimilarity, ALL),
    "trust": Kind("edges that look unlike random pairs", computed.TrustedEdges, ("rank",)),
    "ppr": Kind("proximity by personalised PageRank", computed.DiffusionSimilarity, ALL, learns=True),
    "jaccard": Kind("shared neighbours", computed.JaccardSimilarity, TEMPERED, learns=True),
    "adamic": Kind(
        "shared neighbours, rare ones first", computed.AdamicAdarSimilarity, TEMPERED, learns=True
    ),
    "nmf": Kind(
        "matrix factorisation, normalised", factors.NormalisedFactorization, ALL, learns=True, per_node=True
    ),
    "nsc": Kind("self-expression, normalised", factors.NormalisedExpression, ALL, learns=True, per_node=True),
}
