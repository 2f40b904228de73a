"""Safetensors in and out: names, shapes, types and checksum are compared before any value is used."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import InputError

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}


def encode(tensors: Mapping[str, Tensor], note: str = "") -> bytes:
    """One safetensors document with a note and a checksum over note and values in its header."""
    return b"".join(encoded_in_pieces(tensors, note))


def encoded_in_pieces(tensors: Mapping[str, Tensor], note: str = "") -> Iterator[memoryview]:
    """The document in the order of its bytes. The values are those of the tensors themselves, not copies:
    the library's own `save` would hold a large model in memory once more."""
    # Wide types first, as the format asks for, and then by name, so that equal runs give equal files.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    plain = {name: tensors[name].detach().cpu().contiguous() for name in names}
    header: dict[str, object] = {
        "__metadata__": {"conjoint": json.dumps({"note": note, "sha256": _digest(plain, note)})}
    }
    end = 0
    for name, value in plain.items():
        start, end = end, end + value.nbytes
        header[name] = {
            "dtype": _NAMES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield memoryview(len(text).to_bytes(8, "little") + text)
    for value in plain.values():
        yield value.reshape(-1).view(torch.uint8).numpy().data


def decode(path: Path, expected: Shapes, optional: Shapes | None = None) -> tuple[dict[str, Tensor], str]:
    """The tensors and the note of `path`, which must hold all of `expected` and nothing beyond `optional`."""
    allowed = {**(optional or {}), **expected}
    try:
        with safe_open(str(path), framework="pt") as file:
            _compare(path, file, expected, allowed)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            header = _header(file.metadata())
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged or not safetensors ({error}); restore it from a copy") from None
    note = header.get("note", "")
    if header.get("sha256") != _digest(tensors, note):
        raise InputError(
            f"{path}: the checksum does not match, so the file was changed; restore it from a copy"
        )
    return tensors, note


def _header(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Our own entry of the file's header; empty, so that no checksum matches, if it is not as we write it."""
    try:
        header = json.loads((metadata or {}).get("conjoint", "{}"))
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) and isinstance(header.get("note"), str) else {}


def _compare(path: Path, file: safe_open, expected: Shapes, allowed: Shapes) -> None:
    found = set(file.keys())
    for name in sorted(expected.keys() - found):
        raise InputError(f"{path}: {name!r} is missing; the file belongs to another model or run")
    for name in sorted(found - allowed.keys()):
        raise InputError(f"{path}: {name!r} is unknown here; the file belongs to another model or run")
    for name in sorted(found):
        shape, dtype = allowed[name]
        entry = file.get_slice(name)
        if tuple(entry.get_shape()) != shape or entry.get_dtype() != _NAMES.get(dtype):
            raise InputError(
                f"{path}: {name!r} is {entry.get_dtype()} {list(entry.get_shape())}, expected "
                f"{_NAMES.get(dtype)} {list(shape)}; the file belongs to another model or run"
            )


def _digest(tensors: Mapping[str, Tensor], note: str) -> str:
    digest = hashlib.sha256(note.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"\n{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
