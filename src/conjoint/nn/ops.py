"""The operations that the layers call: compiled kernels where they serve, plain torch elsewhere."""

from .reference import (
    activate_and_drop,
    aggregate,
    attention,
    drop,
    edge_dot,
    edge_softmax,
    head_dot,
    segment_sum,
    sparse_project,
    spread,
)

__all__ = [
    "activate_and_drop",
    "aggregate",
    "attention",
    "drop",
    "edge_dot",
    "edge_softmax",
    "head_dot",
    "segment_sum",
    "sparse_project",
    "spread",
]
