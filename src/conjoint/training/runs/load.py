"""A finished run as a model that predicts, nothing in the folder trusted before it was compared."""

import hashlib
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch

from ...data.npz import read_array
from ...errors import InputError
from ...nn.model import NodeModel
from ..seeding import own_randomness
from .folder import IDS, WEIGHTS, Run, resume_run
from .sidecar import Builder
from .storage import read_file
from .tensors import decode, shapes_of

GIBIBYTE = 2**30


def load_run(path: str | Path, build: Builder | None = None) -> tuple[NodeModel, Run]:
    """The trained model (in evaluation mode) and its run, whose `sidecar`, `config` and `origin` describe it.

    Order matters: checksum, then names and shapes against a model that owns no memory, then the real one.
    """
    run = resume_run(path)
    if not run.sidecar.finished:
        raise InputError(
            f"{path}: training has not finished; go on with it first: conjoint train --resume {path}"
        )
    weights = run.path / WEIGHTS
    if _sha256(weights) != run.sidecar.weights_sha256:
        raise InputError(f"{weights}: not the weights that model.json vouches for; restore both from a copy")
    try:
        with own_randomness(), torch.device("meta"):
            empty = run.spec.build(0, build)
    except (TypeError, RuntimeError, OverflowError, MemoryError) as error:
        raise InputError(f"{run.path}: its model cannot be built ({error}); model.json is damaged") from None
    tensors, _ = decode(weights, shapes_of(empty.state_dict()))
    for name, value in tensors.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise InputError(
                f"{weights}: {name!r} holds NaN or infinite values; train again with a smaller lr"
            )
    model = run.spec.build(run.config.seed, build)
    model.load_state_dict(tensors)
    return model.eval(), run


def node_ids(run: Run) -> npt.NDArray[Any]:
    """The user's own ids of the nodes, in the order of the graph."""
    path = run.path / IDS
    content = read_file(path, 8 * GIBIBYTE, "the list of node ids")
    ids = read_array(content, path)
    if ids.shape != (run.spec.num_nodes,):
        raise InputError(f"{path}: expected {run.spec.num_nodes} ids; restore it from a copy")
    return ids


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"{path}: no such file; the run folder is incomplete")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
