"""Edges of any number, in any order, into CSR: spilled, cut into buckets of rows, sorted one by one."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..graph.adjacency import merge
from ..graph.folder import Described, describe
from ..graph.mapped import NpyWriter

Array = npt.NDArray[Any]
PIECE = 1 << 21  # pairs in memory at a time
BUCKET_ENTRIES = 1 << 23  # entries sorted at a time, 8 bytes each (16 with weights)
MOST_BUCKETS = 256  # open files


class Written(NamedTuple):
    rowptr: Array
    loops: int
    repeated: int  # lines that repeat an edge, or give its other direction
    arrays: dict[str, Described]  # col, and weight if there is one


def write_csr(
    pairs: Iterable[tuple[Array, Array, Array | None]], num_nodes: int, folder: Path, weighted: bool = False
) -> Written:
    """Both directions of every pair into `folder`, sorted by (row, column), without loops and repetitions.

    Weights are joined as `tidy_edges` joins them. Temporary files in `folder` take 8 + 16 bytes per pair, and
    8 + 16 more with weights.

    Args:
        pairs: pieces of (one end, other end, weight) as row numbers.
    """
    index = np.dtype(np.int32 if num_nodes < 2**31 else np.int64)
    weight: list[Any] = [("weight", np.float64)] if weighted else []
    spilled, pair = folder / "pairs.bin", np.dtype([("ends", index, 2), *weight])
    degree, loops, lines = _spill(pairs, num_nodes, spilled, pair)
    bounds = bucket_bounds(degree)
    buckets = [folder / f"bucket-{k}.bin" for k in range(len(bounds))]
    entry = np.dtype([("key", np.int64), *weight])
    _distribute(spilled, num_nodes, bounds, buckets, pair, entry)
    spilled.unlink()
    counts = np.zeros(num_nodes, dtype=np.int64)
    with contextlib.ExitStack() as opened:
        col = opened.enter_context(NpyWriter(folder / "col.npy", index))
        weights = opened.enter_context(NpyWriter(folder / "weight.npy", np.float32)) if weighted else None
        for bucket in buckets:
            entries = np.fromfile(bucket, dtype=entry)
            bucket.unlink()
            key, value = merge(entries["key"], entries["weight"] if weighted else None, np.add)
            if weighted:
                key, value = merge(key >> 1, value, np.maximum)
            row = key // num_nodes
            if len(key):
                first = int(row[0])
                found = np.bincount(row - first)
                counts[first : first + len(found)] += found
            col.append(key - row * num_nodes)
            if weights is not None and value is not None:
                weights.append(value)
    rowptr = np.concatenate([[0], np.cumsum(counts)])
    arrays = {file.path.stem: describe(file) for file in (col, weights) if file is not None}
    return Written(rowptr, loops, lines - loops - int(rowptr[-1]) // 2, arrays)


def bucket_bounds(degree: Array, most_entries: int = BUCKET_ENTRIES) -> Array:
    """The first node after each bucket, so that no bucket has many more entries than `most_entries`."""
    total = np.cumsum(degree)
    count = 0 if len(total) == 0 else int(total[-1])
    size = max(most_entries, -(-count // MOST_BUCKETS))
    ends = np.searchsorted(total, np.arange(size, count, size), side="left") + 1
    return np.unique(np.append(ends, len(degree)))


def _spill(
    pairs: Iterable[tuple[Array, Array, Array | None]], num_nodes: int, path: Path, pair: np.dtype[Any]
) -> tuple[Array, int, int]:
    """All pairs but loops into a file; the degree of each node, the number of loops, that of lines."""
    degree = np.zeros(num_nodes, dtype=np.int64)
    loops = lines = 0
    with open(path, "wb") as file:
        for one, other, weight in pairs:
            lines += len(one)
            proper = one != other
            kept = np.empty(int(proper.sum()), dtype=pair)
            kept["ends"][:, 0], kept["ends"][:, 1] = one[proper], other[proper]
            if weight is not None:
                kept["weight"] = weight[proper]
            loops += len(one) - len(kept)
            degree += np.bincount(kept["ends"].reshape(-1), minlength=num_nodes)
            file.write(kept.data)
    return degree, loops, lines


def _distribute(
    spilled: Path,
    num_nodes: int,
    bounds: Array,
    buckets: list[Path],
    pair: np.dtype[Any],
    entry: np.dtype[Any],
) -> None:
    weighted = entry.names is not None and "weight" in entry.names
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(open(path, "wb")) for path in buckets]
        file = opened.enter_context(open(spilled, "rb"))
        while len(pairs := np.fromfile(file, dtype=pair, count=PIECE)):
            ends = pairs["ends"].astype(np.int64)
            for turned in (0, 1):
                row, column = ends[:, turned], ends[:, 1 - turned]
                bucket = np.searchsorted(bounds, row, side="right")
                order = np.argsort(bucket, kind="stable")
                entries = np.empty(len(pairs), dtype=entry)
                entries["key"] = (row * num_nodes + column)[order]
                if weighted:  # the last bit tells the directions apart, since each has a sum of its own
                    entries["key"] = 2 * entries["key"] + turned
                    entries["weight"] = pairs["weight"][order]
                starts = np.searchsorted(bucket[order], np.arange(len(files) + 1))
                for k, out in enumerate(files):
                    out.write(entries[starts[k] : starts[k + 1]].data)
