"""Search for settings that suit one graph, judged by its validation nodes."""

from .search import Budget, tune
from .trials import Trial, best_of, read_trials

__all__ = ["Budget", "Trial", "best_of", "read_trials", "tune"]
