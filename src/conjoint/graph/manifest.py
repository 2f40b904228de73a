"""manifest.json: what a graph folder holds. It is written last, so a folder without it is not complete."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError

MANIFEST = "manifest.json"
FORMAT = 1
# name -> the kinds of number that it may hold
ARRAYS = {"rowptr": "i", "col": "i", "x": "f", "y": "i", "part": "i", "ids": "iU"}


@dataclass(frozen=True)
class Array:
    """One array as the manifest describes it; the file must agree in every point before it is read."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    name: str
    nodes: int
    entries: int  # both directions of every edge, no self-loops
    features: int
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    negative_features: bool
    notes: tuple[str, ...]
    arrays: Mapping[str, Array]
    format: int = FORMAT

    @property
    def fingerprint(self) -> str:
        """Tells whether two folders hold the same graph, without reading them."""
        parts = [f"{name} {a.dtype} {a.shape} {a.sha256}" for name, a in sorted(self.arrays.items())]
        return hashlib.sha256("\n".join([*parts, *self.class_names]).encode()).hexdigest()


def manifest_to(manifest: Manifest) -> str:
    return json.dumps(asdict(manifest), indent=1, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest, nothing in it trusted, with the sizes of all files compared to it."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > 64 * 2**20:
            raise InputError(f"{path}: too large for a manifest; is it another file?")
        content: Any = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no {MANIFEST}, so it is no complete graph folder; make one: conjoint ingest"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({(error.strerror or str(error)).lower()})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not valid JSON; ingest the graph again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InputError(f"{path}: format {found!r}, this version reads {FORMAT}; update conjoint")
    try:
        arrays = {str(name): _array(entry) for name, entry in content.pop("arrays").items()}
        for key in ("class_names", "feature_names", "notes"):
            content[key] = tuple(map(str, content[key]))
        made = Manifest(arrays=arrays, **content)
        sound = all(type(getattr(made, key)) is int for key in ("nodes", "entries", "features"))
    except (TypeError, KeyError, ValueError, AttributeError):
        sound = False
    if not sound or set(made.arrays) - set(ARRAYS) or not {"rowptr", "col", "x", "y", "ids"} <= set(arrays):
        raise InputError(f"{path}: entries are missing or strange; ingest the graph again")
    _check_shapes(made, path)
    for name, array in made.arrays.items():
        _check_file(folder / f"{name}.npy", array)
    return made


def _array(entry: Mapping[str, Any]) -> Array:
    shape = tuple(entry["shape"])
    if not all(type(n) is int and n >= 0 for n in (*shape, entry["bytes"])):
        raise ValueError
    return Array(str(entry["dtype"]), shape, entry["bytes"], str(entry["sha256"]))


def _check_shapes(made: Manifest, path: Path) -> None:
    expected = {
        "rowptr": (made.nodes + 1,),
        "col": (made.entries,),
        "x": (made.nodes, made.features),
        "y": (made.nodes,),
        "part": (made.nodes,),
        "ids": (made.nodes,),
    }
    for name, array in made.arrays.items():
        if array.shape != expected[name] or array.dtype[1:2] not in ARRAYS[name]:
            raise InputError(
                f"{path}: {name} is {array.dtype} {list(array.shape)}, expected {list(expected[name])}; "
                "ingest the graph again"
            )


def _check_file(path: Path, array: Array) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(
            f"{path}: {(error.strerror or str(error)).lower()}; ingest the graph again"
        ) from None
    if size != array.bytes:
        raise InputError(
            f"{path}: {size:,} bytes, the manifest says {array.bytes:,}; it is truncated or another file: "
            "ingest the graph again"
        )
