"""The setting for a graph that nobody has tuned for: what `conjoint train` uses unless told otherwise.

One for all graphs, chosen by accuracy on validation nodes: docs/training.md shows the rows that chose it.
"""

from typing import Any

MODEL = "gated-trust"
# Where many edges are in doubt, a gate does harm; validation chooses between these (evaluation/doubt.py).
IF_DOUBTED = ("spread-trust", "spread-zero")
TRAIN: dict[str, Any] = {
    "epochs": 300,
    "lr": 0.05,
    "rule": "val-accuracy",
    "consistency": {"passes": 4, "weight": 1.5, "temperature": 0.5, "ramp": 50},
}
FALLBACK = "cat-i-mf"  # where only a part of the graph is seen at a time, or attention is asked for
