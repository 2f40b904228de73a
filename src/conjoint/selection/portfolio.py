"""How an ensemble came about: what was tried, what was chosen, how good it is. Kept in a run folder."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as decode_arrays
from safetensors.numpy import save as encode_arrays

from ..errors import InputError
from ..storage import read_file, read_text

Array = npt.NDArray[Any]
JUDGED = "judged.safetensors"  # the judged nodes


@dataclass(frozen=True)
class Trial:
    """One training of one member on one fold."""

    member: str
    fold: int
    merit: float
    val_accuracy: float
    val_loss: float
    epochs: int  # 0: it diverged
    seconds: float
    # Of a network's first training: epoch, training loss, validation loss and accuracy, thinned out.
    curve: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Portfolio:
    """What was tried, what was chosen, and how good it is on nodes that no member was trained on."""

    metric: str
    folds: int
    labels: int  # that some training learnt from
    trials: tuple[Trial, ...]
    members: tuple[dict[str, Any], ...]  # name, weight, metric; the best first
    estimate: dict[str, float]  # every metric of the ensemble
    left_out: tuple[str, ...] = ()  # members that were not begun, as time would not have sufficed
    interrupted: bool = False
    # The nodes that `estimate` is of, and the ensemble's probabilities by trainings without them. None:
    # labels were too few to hold any out, and `estimate` is of those that trained.
    judged: tuple[Array, Array] | None = field(default=None, repr=False)
    # The ensemble's probabilities of every node, while those of its members are at hand; not kept.
    everywhere: Array | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All but arrays: `judged` is kept in a file of its own."""
        arrays = ("judged", "everywhere")
        plain = asdict(replace(self, judged=None, everywhere=None))
        return {name: part for name, part in plain.items() if name not in arrays}


def read_portfolio(path: Path) -> Portfolio:
    """What `Portfolio.to_dict` gave; a file that is damaged is told."""
    try:
        parts = json.loads(read_text(path, 2**26, "how the ensemble came about"))
        trials = tuple(Trial(**trial) for trial in parts.pop("trials"))
        members, left_out = tuple(parts.pop("members")), tuple(parts.pop("left_out"))
        made = Portfolio(trials=trials, members=members, left_out=left_out, **parts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"{path}: not what a training wrote; restore it from a copy") from None
    return replace(made, judged=read_judged(path.with_name(JUDGED)))


def encode_judged(judged: tuple[Array, Array]) -> bytes:
    nodes, shares = judged
    return encode_arrays({"nodes": nodes.astype(np.int64), "probabilities": shares.astype(np.float32)})


def read_judged(path: Path) -> tuple[Array, Array] | None:
    """What `encode_judged` wrote; None for a run of an earlier version."""
    if not path.exists():
        return None
    try:
        found = decode_arrays(read_file(path, 2**32, "the judged nodes"))
        nodes, shares = found["nodes"], found["probabilities"]
        sound = (
            nodes.dtype == np.int64 and shares.dtype == np.float32 and nodes.ndim == 1 and shares.ndim == 2
        )
        sound = sound and len(nodes) == len(shares) > 0 and nodes.min() >= 0
        sound = sound and bool(np.isfinite(shares).all()) and bool((shares >= 0).all())
    except (SafetensorError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise InputError(f"{path}: not what a training wrote; restore it from a copy")
    return nodes, shares
