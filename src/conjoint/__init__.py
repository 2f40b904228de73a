"""Conjoint: attention on graphs that listens to structure as well as features."""

from .errors import ConjointError, InputError
from .graph.adjacency import Adjacency, adjacency
from .nn.attention import ConjointAttention, Structure
from .nn.cat import CAT
from .nn.conv import CATConv
from .nn.interventions import (
    Constant,
    EdgeScores,
    FeatureSimilarity,
    Intervention,
    MatrixFactorization,
    SelfExpression,
)

__version__ = "0.1.0"

__all__ = [
    "CAT",
    "Adjacency",
    "CATConv",
    "ConjointAttention",
    "ConjointError",
    "Constant",
    "EdgeScores",
    "FeatureSimilarity",
    "InputError",
    "Intervention",
    "MatrixFactorization",
    "SelfExpression",
    "Structure",
    "adjacency",
]
