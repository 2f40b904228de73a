"""The network as scikit-learn estimators: fit, predict, transform, on arrays and any kind of graph."""

from .base import AttentionTable
from .classifier import CATClassifier
from .clusterer import CATClusterer
from .graphs import NodeGraph
from .transductive import Transductive

__all__ = ["AttentionTable", "CATClassifier", "CATClusterer", "NodeGraph", "Transductive"]
