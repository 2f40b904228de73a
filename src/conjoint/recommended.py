"""The setting for a graph that nobody has tuned for: what `conjoint train` uses unless told otherwise.

One for all graphs, chosen by accuracy on validation nodes: docs/training.md shows the rows that chose it.
"""

from typing import Any

MODEL = "spread-trust"
# Validation chooses between it and one rival (evaluation/rivals.py): equal edges where many are in doubt, or
# else a gate on the features.
IF_DOUBTED = (MODEL, "spread-zero")
OTHERWISE = (MODEL, "gated-trust")
TRAIN: dict[str, Any] = {
    "epochs": 300,
    "lr": 0.05,
    "rule": "val-accuracy",
    "consistency": {"passes": 4, "weight": 1.5, "temperature": 0.5, "ramp": 50},
}
FALLBACK = "cat-i-mf"  # where only a part of the graph is seen at a time, or attention is asked for
