"""Pictures of a trained network. Each function takes plain numbers and returns a matplotlib Figure."""

from .attention import attention_histograms, learnt_mix
from .confusion import confusion_matrix
from .curves import learning_curves
from .ego import ego_network
from .embedding import embedding_map, project
from .style import picture

__all__ = [
    "attention_histograms",
    "confusion_matrix",
    "ego_network",
    "embedding_map",
    "learning_curves",
    "learnt_mix",
    "picture",
    "project",
]
