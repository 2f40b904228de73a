"""Structural interventions: scores for edges, learnt or computed outside the network."""

from .base import Constant, EdgeScores, Intervention, align_scores
from .embedding import EmbeddingSimilarity
from .factors import LowRank, MatrixFactorization, SelfExpression
from .features import FeatureSimilarity

__all__ = [
    "Constant",
    "EdgeScores",
    "EmbeddingSimilarity",
    "FeatureSimilarity",
    "Intervention",
    "LowRank",
    "MatrixFactorization",
    "SelfExpression",
    "align_scores",
]
