"""A graph on disk: a folder of plain memory-mapped arrays that may be larger than memory."""

from pathlib import Path

import numpy as np
import torch

from ..errors import InputError
from .graph import Graph
from .manifest import MANIFEST, read_manifest
from .mapped import Array, Mapped, checked_text

PIECE = 1 << 20  # ids looked at together


def is_graph_folder(path: str | Path) -> bool:
    """Whether a path names a graph folder, complete or not."""
    return (Path(path) / MANIFEST).exists()


def open_folder(folder: str | Path) -> Graph:
    """A folder that `ingest` made. Labels are read, everything else stays on the disk until it is used."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    maps = {name: Mapped(folder / f"{name}.npy") for name in manifest.arrays}
    for name, mapped in maps.items():
        described = manifest.arrays[name]
        if (mapped.values.dtype.str, mapped.values.shape) != (described.dtype, described.shape):
            raise InputError(f"{folder / name}.npy: not as the manifest says; ingest the graph again")
    rowptr, y = np.array(maps["rowptr"].values), np.array(maps["y"].values, dtype=np.int64)
    if rowptr[0] != 0 or rowptr[-1] != manifest.entries or bool((np.diff(rowptr) < 0).any()):
        raise InputError(f"{folder / 'rowptr.npy'}: its numbers make no sense; ingest the graph again")
    if y.size and int(y.max()) >= len(manifest.class_names):
        raise InputError(f"{folder / 'y.npy'}: a label beyond the classes; ingest the graph again")
    try:
        for start in range(0, len(y), PIECE):
            checked_text(maps["ids"].values[start : start + PIECE])
    except ValueError as error:
        raise InputError(f"{folder}/ids.npy: {error}; ingest the graph again") from None
    parts = np.array(maps["part"].values) if "part" in maps else None
    return Graph(
        given_x=maps["x"].values,
        y=torch.from_numpy(y),
        edges=(rowptr, maps["col"].values),
        ids=maps["ids"].values,
        class_names=list(manifest.class_names),
        name=manifest.name,
        notes=list(manifest.notes),
        published={} if parts is None else {"given": _rows_of(parts)},
        feature_names=list(manifest.feature_names),
        folder=folder.absolute(),
        maps=tuple(maps.values()),
        given_fingerprint=manifest.fingerprint,
    )


def _rows_of(part: Array) -> tuple[Array, Array, Array]:
    """Rows of train, val and test."""
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2)
