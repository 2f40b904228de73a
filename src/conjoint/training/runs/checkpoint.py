"""The whole state of training after an epoch, in one file: weights, Adam's memory, best weights, counters.

One file, so that its parts cannot come from different epochs.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import InputError
from ...nn.model import NodeModel
from ..optimizer import SLOTS, optimizer_state, restore_optimizer, slot_shapes
from ..stopping import Seen, Snapshot
from .tensors import decode, encoded_in_pieces, shapes_of


@dataclass(frozen=True, eq=False)
class Progress:
    """Where training stands after `epoch`."""

    epoch: int
    seen: Seen
    best: Snapshot | None


def encode_checkpoint(
    model: NodeModel, optimizer: torch.optim.Adam, progress: Progress
) -> Iterator[memoryview]:
    tensors: dict[str, Tensor] = {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best/{k}": v for k, v in (progress.best or {}).items()}
    tensors |= {f"adam/{k}": v for k, v in optimizer_state(model, optimizer).items()}
    note = {"epoch": progress.epoch, "seen": asdict(progress.seen)}
    return encoded_in_pieces(tensors, json.dumps(note))


def restore_checkpoint(path: Path, model: NodeModel, optimizer: torch.optim.Adam) -> Progress:
    """Put the state into the model and the optimiser, after the whole file was found to be sound."""
    weights = shapes_of(model.state_dict())
    adam = {f"adam/{name}": shape for name, shape in slot_shapes(model, optimizer).items()}
    optional = adam | {f"best/{name}": shape for name, shape in weights.items()}
    tensors, note = decode(path, {f"model/{name}": shape for name, shape in weights.items()}, optional)
    best = _part(tensors, "best/")
    memory = _part(tensors, "adam/")
    by_parameter = {key.rsplit("/", 1)[0] for key in memory}
    if len(memory) != len(SLOTS) * len(by_parameter) or len(best) not in (0, len(weights)):
        raise InputError(
            f"{path}: some of the optimiser's or the best weights are missing; restore it from a copy"
        )
    epoch, seen = _read_note(note, path)
    if (seen.kept_epoch > 0) != bool(best):
        raise InputError(f"{path}: the counters and the best weights disagree; restore it from a copy")
    model.load_state_dict(_part(tensors, "model/"))
    restore_optimizer(model, optimizer, memory)
    device = next(model.parameters()).device
    return Progress(epoch, seen, {k: v.to(device) for k, v in best.items()} or None)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _read_note(note: str, path: Path) -> tuple[int, Seen]:
    try:
        content: Any = json.loads(note)
        epoch, seen = content["epoch"], Seen(**content["seen"])
        numbers = [getattr(seen, f.name) for f in fields(Seen)]
        whole = [epoch, seen.kept_epoch, seen.alive_epoch]
        sound = all(isinstance(v, int | float) and not math.isnan(v) for v in numbers)
        sound &= all(type(v) is int and 0 <= v <= epoch for v in whole) and epoch >= 1
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise InputError(f"{path}: its counters make no sense; restore it from a copy")
    return epoch, seen
