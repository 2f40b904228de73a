"""Training: one function, named selection rules, run folders that survive anything."""

from .config import BatchConfig, Consistency, TrainConfig, config_from, config_to
from .inference import infer
from .loop import Fitted, fit
from .predictions import embed, evaluate, predict_new_nodes, predict_proba
from .ranks import Ranks, alone, connected
from .runs import ModelSpec, Run, load_run, node_ids, resume_run, start_run
from .seeding import build_seeded
from .seeds import Estimate, Summary, fit_seeds, summarise
from .steps import Batch
from .stopping import RULES

__all__ = [
    "RULES",
    "Batch",
    "BatchConfig",
    "Consistency",
    "Estimate",
    "Fitted",
    "ModelSpec",
    "Ranks",
    "Run",
    "Summary",
    "TrainConfig",
    "alone",
    "build_seeded",
    "config_from",
    "config_to",
    "connected",
    "embed",
    "evaluate",
    "fit",
    "fit_seeds",
    "infer",
    "load_run",
    "node_ids",
    "predict_new_nodes",
    "predict_proba",
    "resume_run",
    "start_run",
    "summarise",
]
