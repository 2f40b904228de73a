"""Structural interventions: scores for edges, learnt or computed outside the network."""

from .base import Constant, EdgeScores, Intervention, align_scores
from .computed import Computed, SmoothedSimilarity, SpectralSimilarity
from .embedding import EmbeddingSimilarity
from .factors import LowRank, MatrixFactorization, SelfExpression
from .features import FeatureSimilarity

__all__ = [
    "Computed",
    "Constant",
    "EdgeScores",
    "EmbeddingSimilarity",
    "FeatureSimilarity",
    "Intervention",
    "LowRank",
    "MatrixFactorization",
    "SelfExpression",
    "SmoothedSimilarity",
    "SpectralSimilarity",
    "align_scores",
]
