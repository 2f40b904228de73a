"""Graphs larger than memory and than one machine: batches, exact inference in pieces, many processes."""

from .batches import EpochBatches, NodeBatch, Plan, plan_batches
from .config import BatchConfig
from .inference import infer
from .ranks import Ranks, alone, joined
from .work import fit_batches

__all__ = [
    "BatchConfig",
    "EpochBatches",
    "NodeBatch",
    "Plan",
    "Ranks",
    "alone",
    "fit_batches",
    "infer",
    "joined",
    "plan_batches",
]
