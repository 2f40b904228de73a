"""Structural interventions: scores for edges, learnt or computed outside the network."""

# ruff: noqa: F401
from .base import Constant, EdgeScores, Intervention, Several, align_scores
from .computed import (
    AdamicAdarSimilarity,
    Computed,
    DiffusionSimilarity,
    EmbeddingSimilarity,
    FeatureSimilarity,
    JaccardSimilarity,
    RandomSimilarity,
    SmoothedSimilarity,
    SpectralSimilarity,
    TrustedEdges,
)
from .factors import (
    LowRank,
    MatrixFactorization,
    NormalisedExpression,
    NormalisedFactorization,
    SelfExpression,
)
