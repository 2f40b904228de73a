"""Structural interventions: scores for edges, learnt or computed outside the network."""

from .base import Constant, EdgeScores, Intervention, align_scores
from .computed import (
    Computed,
    DiffusionSimilarity,
    RandomSimilarity,
    SmoothedSimilarity,
    SpectralSimilarity,
    TrustedEdges,
)
from .embedding import EmbeddingSimilarity
from .factors import LowRank, MatrixFactorization, SelfExpression
from .features import FeatureSimilarity
from .normalised import NormalisedExpression, NormalisedFactorization
from .overlap import AdamicAdarSimilarity, JaccardSimilarity
from .several import Several

__all__ = [
    "AdamicAdarSimilarity",
    "Computed",
    "Constant",
    "DiffusionSimilarity",
    "EdgeScores",
    "EmbeddingSimilarity",
    "FeatureSimilarity",
    "Intervention",
    "JaccardSimilarity",
    "LowRank",
    "MatrixFactorization",
    "NormalisedExpression",
    "NormalisedFactorization",
    "RandomSimilarity",
    "SelfExpression",
    "Several",
    "SmoothedSimilarity",
    "SpectralSimilarity",
    "TrustedEdges",
    "align_scores",
]
