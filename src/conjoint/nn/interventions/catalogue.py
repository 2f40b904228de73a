"""Interventions by the short names that models, estimators and the command line use."""

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import InputError
from .base import Constant, Intervention
from .computed import SmoothedSimilarity, SpectralSimilarity
from .factors import MatrixFactorization, SelfExpression
from .features import FeatureSimilarity


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
    learns_temperature: bool = False


def make(name: str, num_nodes: int, classes: int, choices: Choices | None = None) -> Intervention:
    """The intervention called `name` for a graph of so many nodes and classes."""
    if name not in KINDS:
        raise InputError(f"intervention {name!r} is not known; choose one of {', '.join(KINDS)}")
    return KINDS[name].make(num_nodes, classes, choices or Choices())


def _factors(kind: type[MatrixFactorization] | type[SelfExpression]) -> Callable[..., Intervention]:
    return lambda nodes, classes, choices: kind(nodes, choices.rank or classes)


def _computed(kind: Callable[..., Intervention]) -> Callable[..., Intervention]:
    return lambda nodes, classes, choices: kind(**choices.given())


TEMPERED = ("temperature", "learn_temperature")
KINDS: dict[str, Kind] = {
    "mf": Kind("matrix factorisation", _factors(MatrixFactorization), ("rank",)),
    "sc": Kind("self-expression", _factors(SelfExpression), ("rank",)),
    "fs": Kind("feature similarity", lambda *_: FeatureSimilarity()),
    "zero": Kind("every edge scored 0", lambda *_: Constant()),
    "spectral": Kind(
        "similarity of leading eigenvectors", _computed(SpectralSimilarity), ("rank", *TEMPERED)
    ),
    "smooth": Kind("similarity of smoothed features", _computed(SmoothedSimilarity), ("rank", *TEMPERED)),
}
