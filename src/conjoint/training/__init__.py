"""Training: one function, named selection rules, run folders that survive anything."""

from .config import TrainConfig, config_from, config_to
from .consistency import Consistency
from .fitted import Fitted, embed, evaluate, predict_proba
from .inputs import Batch
from .loop import fit
from .runs import ModelSpec, Run, load_run, node_ids, resume_run, start_run
from .seeding import build_seeded
from .seeds import Spread, Summary, fit_seeds, summarise
from .stopping import RULES

__all__ = [
    "RULES",
    "Batch",
    "Consistency",
    "Fitted",
    "ModelSpec",
    "Run",
    "Spread",
    "Summary",
    "TrainConfig",
    "build_seeded",
    "config_from",
    "config_to",
    "embed",
    "evaluate",
    "fit",
    "fit_seeds",
    "load_run",
    "node_ids",
    "predict_proba",
    "resume_run",
    "start_run",
    "summarise",
]
