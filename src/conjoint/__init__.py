"""Conjoint: attention on graphs that listens to structure as well as features."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ConjointError, InputError

# Same bits at any number of threads, see threads.py. MKL looks for this at its first matrix product.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")
# Large tensors on large pages: a fresh half-gigabyte costs a fifth. torch reads it at its first tensor.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# Threads that wait for each other should sleep soon: libgomp's 300 000 turns make a step many times slower
# where other programs want the cores too. Far fewer turns would put them to sleep between the kernels of one
# step, and waking them costs more than a small kernel takes. libgomp reads it when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from .data import Graph, load, load_graph, make_split, read_graph
    from .estimator import CATClassifier, CATClusterer, NodeGraph, Transductive
    from .graph.adjacency import Adjacency, adjacency
    from .learned import Learned, learn, load_learned
    from .nn.attention import ConjointAttention, Structure
    from .nn.cat import CAT
    from .nn.conv import CATConv
    from .nn.interventions import (
        Constant,
        EdgeScores,
        EmbeddingSimilarity,
        FeatureSimilarity,
        Intervention,
        MatrixFactorization,
        SelfExpression,
    )
    from .nn.random_propagation import RandomPropagation
    from .training import Consistency, TrainConfig, evaluate, fit

__version__ = "0.1.0"

# Importing torch takes seconds, and `conjoint --help` needs none of it: a name is fetched when it is used.
_HOMES = {
    "data": ("Graph", "load", "load_graph", "make_split", "read_graph"),
    "estimator": ("CATClassifier", "CATClusterer", "NodeGraph", "Transductive"),
    "graph.adjacency": ("Adjacency", "adjacency"),
    "learned": ("Learned", "learn", "load_learned"),
    "nn.attention": ("ConjointAttention", "Structure"),
    "nn.cat": ("CAT",),
    "nn.conv": ("CATConv",),
    "nn.interventions": (
        *("Constant", "EdgeScores", "EmbeddingSimilarity", "FeatureSimilarity"),
        *("Intervention", "MatrixFactorization", "SelfExpression"),
    ),
    "nn.random_propagation": ("RandomPropagation",),
    "training": ("Consistency", "TrainConfig", "evaluate", "fit"),
}

__all__ = [
    "CAT",
    "Adjacency",
    "CATClassifier",
    "CATClusterer",
    "CATConv",
    "ConjointAttention",
    "ConjointError",
    "Consistency",
    "Constant",
    "EdgeScores",
    "EmbeddingSimilarity",
    "FeatureSimilarity",
    "Graph",
    "InputError",
    "Intervention",
    "Learned",
    "MatrixFactorization",
    "NodeGraph",
    "RandomPropagation",
    "SelfExpression",
    "Structure",
    "TrainConfig",
    "Transductive",
    "adjacency",
    "evaluate",
    "fit",
    "learn",
    "load",
    "load_graph",
    "load_learned",
    "make_split",
    "read_graph",
]


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds misspelt names

    def __getattr__(name: str) -> Any:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # With PyG loaded, networks are made of its kind of layers: see nn/layer_class.py.
        import_module(".nn.conv", __name__)
        value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
