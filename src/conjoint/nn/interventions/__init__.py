"""Structural interventions: scores for edges, learnt or computed outside the network."""

from .base import Constant, EdgeScores, Intervention, align_scores
from .factors import LowRank, MatrixFactorization, SelfExpression
from .features import FeatureSimilarity

__all__ = [
    "Constant",
    "EdgeScores",
    "FeatureSimilarity",
    "Intervention",
    "LowRank",
    "MatrixFactorization",
    "SelfExpression",
    "align_scores",
]
