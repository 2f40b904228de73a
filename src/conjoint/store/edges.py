"""Edges of any number, in any order, into CSR: spilled, cut into buckets of listeners, sorted one by one."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..graph.mapped import NpyWriter

Array = npt.NDArray[Any]
PIECE = 1 << 21  # pairs in memory at a time
BUCKET_ENTRIES = 1 << 23  # entries sorted at a time, 8 bytes each
MOST_BUCKETS = 256  # open files


class Written(NamedTuple):
    rowptr: Array
    loops: int
    repeated: int  # lines that repeat an edge, or give its other direction
    sha256: str


def write_csr(pairs: Iterable[tuple[Array, Array]], num_nodes: int, target: Path, scratch: Path) -> Written:
    """Both directions of every pair, sorted by (listener, speaker), without loops and repetitions.

    Args:
        pairs: pieces of (one end, other end) as row numbers.
        target: the .npy file for the speakers.
        scratch: a folder for temporary files; they take 8 + 16 bytes per pair.
    """
    spilled = scratch / "pairs.bin"
    degree, loops, lines = _spill(pairs, num_nodes, spilled)
    bounds = bucket_bounds(degree)
    buckets = [scratch / f"bucket-{k}.bin" for k in range(len(bounds))]
    _distribute(spilled, num_nodes, bounds, buckets)
    spilled.unlink()
    kind = np.int32 if num_nodes < 2**31 else np.int64
    counts = np.zeros(num_nodes, dtype=np.int64)
    with NpyWriter(target, kind) as col:
        for bucket in buckets:
            key = np.fromfile(bucket, dtype=np.int64)
            bucket.unlink()
            key.sort()
            key = key[np.concatenate([[True], key[1:] != key[:-1]])] if len(key) else key
            listener = key // num_nodes
            if len(key):
                first = int(listener[0])
                found = np.bincount(listener - first)
                counts[first : first + len(found)] += found
            col.append(key - listener * num_nodes)
    rowptr = np.concatenate([[0], np.cumsum(counts)])
    return Written(rowptr, loops, lines - loops - int(rowptr[-1]) // 2, col.sha256)


def bucket_bounds(degree: Array, most_entries: int = BUCKET_ENTRIES) -> Array:
    """The first node after each bucket, so that no bucket has many more entries than `most_entries`."""
    total = np.cumsum(degree)
    count = 0 if len(total) == 0 else int(total[-1])
    size = max(most_entries, -(-count // MOST_BUCKETS))
    ends = np.searchsorted(total, np.arange(size, count, size), side="left") + 1
    return np.unique(np.append(ends, len(degree)))


def _spill(pairs: Iterable[tuple[Array, Array]], num_nodes: int, path: Path) -> tuple[Array, int, int]:
    kind = np.int32 if num_nodes < 2**31 else np.int64
    degree = np.zeros(num_nodes, dtype=np.int64)
    loops = lines = 0
    with open(path, "wb") as file:
        for one, other in pairs:
            lines += len(one)
            proper = one != other
            loops += len(one) - int(proper.sum())
            both = np.stack([one[proper], other[proper]], axis=1).astype(kind)
            degree += np.bincount(both.reshape(-1), minlength=num_nodes)
            file.write(both.data)
    return degree, loops, lines


def _distribute(spilled: Path, num_nodes: int, bounds: Array, buckets: list[Path]) -> None:
    kind = np.dtype(np.int32 if num_nodes < 2**31 else np.int64)
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(open(path, "wb")) for path in buckets]
        with open(spilled, "rb") as file:
            while len(pairs := np.fromfile(file, dtype=kind, count=2 * PIECE)):
                ends = pairs.reshape(-1, 2).astype(np.int64)
                for listener, speaker in ((ends[:, 0], ends[:, 1]), (ends[:, 1], ends[:, 0])):
                    bucket = np.searchsorted(bounds, listener, side="right")
                    order = np.argsort(bucket, kind="stable")
                    key = (listener * num_nodes + speaker)[order]
                    starts = np.searchsorted(bucket[order], np.arange(len(files) + 1))
                    for k, out in enumerate(files):
                        out.write(key[starts[k] : starts[k + 1]].data)
