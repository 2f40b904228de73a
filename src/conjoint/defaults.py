"""What is taken where nobody says otherwise. Light, so that --help can tell it without loading torch."""

from typing import Any

# Random propagation, as a member of an ensemble on graphs with few labels (docs/training.md).
TRAIN: dict[str, Any] = {
    "epochs": 300,
    "lr": 0.05,
    "rule": "val-accuracy",
    "consistency": {"passes": 4, "weight": 1.5, "temperature": 0.5, "ramp": 50},
}
FALLBACK = "cat-i-mf"  # where only a part of the graph is seen at a time, or attention is asked for
SEEDS = 3  # trainings of one named network, so that the result has an error bar; an ensemble is learnt once
# The paper's network for a graph, where it is not the usual one.
VARIANTS: dict[str, dict[str, Any]] = {
    "ogbn-arxiv": {
        "hidden": 256,
        "heads": 3,
        "out_heads": 3,
        "residual": True,
        "norm": "batch",
        "bias": "output",
        "per_head": False,
    }
}
