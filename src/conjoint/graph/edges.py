"""Edges in the one form that later stages expect: undirected, simple, sorted; with a note for each change."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..text import count


def tidy_edges(
    source: npt.NDArray[Any],
    target: npt.NDArray[Any],
    num_nodes: int,
    weight: npt.NDArray[Any] | None,
    notes: list[str],
) -> tuple[Tensor, Tensor | None]:
    """Undirected, no self-loops, no duplicates, sorted by (source, target).

    Weights of repeated lines add up; an edge given in both directions keeps the larger of the two sums, so
    that a symmetric list and a one-way list of the same graph give the same weights.
    """
    given = len(source)
    keep = source != target
    loops = given - int(keep.sum())
    if loops:
        notes.append(f"dropped {count(loops, 'self-loop')} (layers add their own)")
        source, target = source[keep], target[keep]
        weight = None if weight is None else weight[keep]
    key = source.astype(np.int64) * num_nodes
    key += target
    one_way, value = merge(key, weight, np.add)
    repeated = len(key) - len(one_way)
    del key  # with many edges every array counts: 80 MB for 10 million
    if repeated:
        merged = "merged (weights added)" if weight is not None else "dropped"
        notes.append(f"{merged} {count(repeated, 'duplicate edge')}")
    ends = _unpack(one_way, num_nodes)
    doubled = np.concatenate([one_way, ends[1] * num_nodes + ends[0]])
    directed = len(one_way)
    del ends, one_way
    both, value = merge(doubled, None if value is None else np.concatenate([value, value]), np.maximum)
    del doubled
    if len(both) != directed:
        notes.append(f"made undirected: {count(len(both) // 2, 'edge')} became {len(both)} entries")
    return torch.from_numpy(_unpack(both, num_nodes)), None if value is None else torch.from_numpy(
        value.astype(np.float32)
    )


def merge(
    key: npt.NDArray[np.int64], value: npt.NDArray[Any] | None, join: np.ufunc
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any] | None]:
    """Sorted unique keys, values of equal keys joined in order. Without values ``key`` is sorted in place."""
    if value is None:
        key.sort()
        return key[_first_of_each(key)], None
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order].astype(np.float64)
    starts = np.flatnonzero(_first_of_each(key))
    return key[starts], join.reduceat(value, starts) if len(starts) else value


def _unpack(key: npt.NDArray[np.int64], num_nodes: int) -> npt.NDArray[np.int64]:
    """Keys back to pairs [2, E]; NumPy's own divmod on signed numbers is ten times slower."""
    ends = np.empty((2, len(key)), dtype=np.int64)
    np.floor_divide(key, num_nodes, out=ends[0])
    np.multiply(ends[0], -num_nodes, out=ends[1])
    ends[1] += key
    return ends


def _first_of_each(sorted_key: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    first = np.ones(len(sorted_key), dtype=bool)
    np.not_equal(sorted_key[1:], sorted_key[:-1], out=first[1:])
    return first
