"""Run folders: start, resume, load."""

from .folder import Run, resume_run, start_run
from .load import load_run, node_ids
from .sidecar import ModelSpec, Sidecar

__all__ = ["ModelSpec", "Run", "Sidecar", "load_run", "node_ids", "resume_run", "start_run"]
