"""Tensors on disk: a safetensors file whose names, shapes, types and checksum are compared before any use.

A checkpoint is the whole state of training after an epoch in one such file (weights, Adam's memory, best
weights, counters), so that its parts cannot come from different epochs.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import InputError, is_whole
from ..nn.model import NodeModel
from .optimizer import RowAdam
from .stopping import Seen, Snapshot

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
SLOTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


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
    for name, parameter in model.named_parameters():  # one that never had a gradient has no state
        state = optimizer.state.get(parameter, {})
        tensors |= {f"adam/{name}/{slot}": value for slot, value in state.items()}
    note = {"epoch": progress.epoch, "seen": asdict(progress.seen)}
    return encode(tensors, json.dumps(note))


def restore_checkpoint(path: Path, model: NodeModel, optimizer: torch.optim.Adam) -> Progress:
    """Put the state into the model and the optimiser, after the whole file was found to be sound."""
    weights = shapes_of(model.state_dict())
    optional = _state_shapes(model, optimizer)
    optional |= {f"best/{name}": shape for name, shape in weights.items()}
    tensors, note = decode(path, {f"model/{name}": shape for name, shape in weights.items()}, optional)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition("/")
        parts[part][rest] = value
    best, memory = parts["best"], parts["adam"]
    by_parameter = {key.rsplit("/", 1)[0] for key in memory}
    if len(memory) != len(SLOTS) * len(by_parameter) or len(best) not in (0, len(weights)):
        raise damaged(path, "some of the optimiser's or the best weights are missing")
    epoch, seen = _read_note(note, path)
    if (seen.kept_epoch > 0) != bool(best):
        raise damaged(path, "the counters and the best weights disagree")
    model.load_state_dict(parts["model"])
    by_name, device = dict(model.named_parameters()), next(model.parameters()).device
    for key, value in memory.items():
        name, slot = key.rsplit("/", 1)
        optimizer.state[by_name[name]][slot] = value.to(device)
    return Progress(epoch, seen, {k: v.to(device) for k, v in best.items()} or None)


def _state_shapes(
    model: NodeModel, optimizer: torch.optim.Adam
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    by_row = {id(p) for p in model.structural_parameters()} if isinstance(optimizer, RowAdam) else set()
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
    for name, p in model.named_parameters():
        steps = tuple(p.shape[:1]) if id(p) in by_row and p.dim() == 2 else ()
        shapes[f"adam/{name}/step"] = (steps, torch.float32)
        shapes |= {f"adam/{name}/{slot}": (tuple(p.shape), p.dtype) for slot in SLOTS[1:]}
    return shapes


def _read_note(note: str, path: Path) -> tuple[int, Seen]:
    try:
        content = json.loads(note)
        epoch, seen = content["epoch"], Seen(**content["seen"])
        counters = [epoch, seen.kept_epoch, seen.alive_epoch]
        sound = all(isinstance(v, int | float) and not math.isnan(v) for v in astuple(seen))
        sound &= is_whole(epoch, 1) and all(is_whole(v, 0, epoch) for v in counters)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise damaged(path, "its counters make no sense")
    return epoch, seen


def damaged(place: object, why: str) -> InputError:
    return InputError(f"{place}: {why}; restore it from a copy")


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}


def encode(tensors: Mapping[str, Tensor], note: str = "") -> Iterator[memoryview]:
    """One safetensors document with a note, and a checksum over note and values, in its header.

    It comes in pieces. The values are those of the tensors themselves, not copies: the library's own `save`
    would hold a large model in memory once more.
    """
    # Wide types first, as the format asks for, and then by name, so that equal runs give equal files.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    plain = {name: tensors[name].detach().cpu().contiguous() for name in names}
    about = json.dumps({"note": note, "sha256": _digest(plain, note)})
    header: dict[str, object] = {"__metadata__": {"conjoint": about}}
    end = 0
    for name, value in plain.items():
        start, end = end, end + value.nbytes
        kind, shape = _NAMES[value.dtype], list(value.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield memoryview(len(text).to_bytes(8, "little") + text)
    for value in plain.values():
        yield _bytes(value)


def decode(path: Path, expected: Shapes, optional: Shapes | None = None) -> tuple[dict[str, Tensor], str]:
    """The tensors and the note of `path`, which must hold all of `expected` and nothing beyond `optional`."""
    try:
        with safe_open(str(path), framework="pt") as file:
            _compare(path, file, expected, {**(optional or {}), **expected})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            header = _header(file.metadata())
    except (SafetensorError, OSError) as error:
        raise damaged(path, f"damaged or not safetensors ({error})") from None
    note = header.get("note", "")
    if header.get("sha256") != _digest(tensors, note):
        raise damaged(path, "the checksum does not match, so the file was changed")
    return tensors, note


def _header(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Our own entry of the file's header; empty, so that no checksum matches, if it is not as we write it."""
    try:
        header = json.loads((metadata or {}).get("conjoint", "{}"))
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) and isinstance(header.get("note"), str) else {}


def _compare(path: Path, file: safe_open, expected: Shapes, allowed: Shapes) -> None:
    found, foreign = set(file.keys()), "the file belongs to another model or run"
    for name in sorted(expected.keys() - found):
        raise InputError(f"{path}: {name!r} is missing; {foreign}")
    for name in sorted(found - allowed.keys()):
        raise InputError(f"{path}: {name!r} is unknown here; {foreign}")
    for name in sorted(found):
        (shape, dtype), entry = allowed[name], file.get_slice(name)
        is_now = f"{entry.get_dtype()} {list(entry.get_shape())}"
        should = f"{_NAMES.get(dtype)} {list(shape)}"
        if is_now != should:
            raise InputError(f"{path}: {name!r} is {is_now}, expected {should}; {foreign}")


def _digest(tensors: Mapping[str, Tensor], note: str) -> str:
    digest = hashlib.sha256(note.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"\n{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(_bytes(value))
    return digest.hexdigest()


def _bytes(value: Tensor) -> memoryview:
    return value.reshape(-1).view(torch.uint8).numpy().data


_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
