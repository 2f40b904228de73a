"""Plain arrays (from an .npz, SciPy or PyG) checked and turned into a graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..graph.graph import Graph, build_graph, without_label
from ..graph.splits import build_split


def graph_from_arrays(
    ends: npt.ArrayLike,
    *,
    place: str,
    name: str,
    num_nodes: int,
    x: Any = None,
    y: Any = None,
    node_ids: Any = None,
    class_names: Sequence[str] | None = None,
    weight: Any = None,
    split: tuple[Any, Any, Any] | None = None,
) -> Graph:
    """``ends`` is [2, E]. Sizes, ranges and finiteness are checked; errors call the source ``place``.

    Nobody asked for a ``split`` that came along: one that does not hold is noted, not an error.
    """
    notes: list[str] = []
    pairs = np.asarray(ends)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(
            f"{place}: edges of shape {pairs.shape} and type {pairs.dtype} are not pairs of rows"
        )
    if pairs.size and (pairs.min() < 0 or pairs.max() >= num_nodes):
        at = int(np.argmax(((pairs < 0) | (pairs >= num_nodes)).any(axis=0)))
        raise InputError(
            f"{place}: edge {at} joins {pairs[:, at].tolist()}, but nodes go from 0 to {num_nodes - 1}"
        )
    if x is not None and (len(x.shape) != 2 or x.shape[0] != num_nodes or x.shape[1] == 0):
        raise InputError(
            f"{place}: x has shape {tuple(x.shape)}; give one row per node ({num_nodes}) and a column"
        )
    labels, names = labels_from(y, num_nodes, place, class_names)
    without_label(labels, names, notes)
    published = {}
    if split is not None:
        try:
            build_split(*split, labels=labels, name="given")
            published["given"] = split
        except (InputError, ValueError, TypeError) as error:
            notes.append(f"the split that came along is not used: {error}")
    return build_graph(
        pairs[0].astype(np.int64),
        pairs[1].astype(np.int64),
        labels=labels,
        name=name,
        ids=_ids(node_ids, num_nodes, place),
        class_names=names,
        x=x,
        weight=_weights(weight, pairs.shape[1], place),
        published=published,
        notes=notes,
    )


def labels_from(
    y: Any, num_nodes: int, place: str, class_names: Sequence[str] | None = None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels as given: numbers keep their value (below 0 = unlabelled), text is numbered in sorted order."""
    if y is None:
        return np.full(num_nodes, -1, dtype=np.int64), list(class_names or [])
    values = np.asarray(y)
    if values.shape != (num_nodes,):
        raise InputError(f"{place}: labels have shape {values.shape}; give one per node ({num_nodes})")
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
        if not (np.isfinite(values).all() and (values == np.round(values)).all()):
            raise InputError(f"{place}: labels are fractions; classes need whole numbers or names")
        values = values.astype(np.int64)
    if values.dtype.kind in "iub":
        labels = np.maximum(values.astype(np.int64), -1)
        top = int(labels.max(initial=-1)) + 1
        if top > max(num_nodes, len(class_names or [])):
            raise InputError(
                f"{place}: label {top - 1} is too large; number {num_nodes} nodes' classes from 0"
            )
        names = [str(c) for c in range(top)] if class_names is None else [str(c) for c in class_names]
        if len(names) < top:
            raise InputError(f"{place}: label {top - 1} has no name; class_names has {len(names)}")
        return labels, names
    words = [None if v is None or v != v or str(v) == "" else str(v) for v in values.tolist()]
    names = sorted({w for w in words if w is not None}) if class_names is None else list(class_names)
    codes = {name: code for code, name in enumerate(names)}
    stray = next((w for w in words if w is not None and w not in codes), None)
    if stray is not None:
        raise InputError(f"{place}: label {stray!r} is not among class_names")
    return np.array([-1 if w is None else codes[w] for w in words], dtype=np.int64), names


def _ids(node_ids: Any, num_nodes: int, place: str) -> npt.NDArray[Any]:
    if node_ids is None:
        return np.arange(num_nodes)
    ids = np.asarray(node_ids)
    if ids.shape != (num_nodes,):
        raise InputError(f"{place}: node_ids have shape {ids.shape}; give one per node ({num_nodes})")
    ids = ids.astype(np.int64) if ids.dtype.kind in "iu" else ids.astype(np.str_)
    kept, first = np.unique(ids, return_index=True)
    if len(kept) < num_nodes:
        again = int(np.setdiff1d(np.arange(num_nodes), first)[0])
        raise InputError(f"{place}: node id {ids[again].item()!r} stands there twice; ids must differ")
    return ids


def _weights(weight: Any, num_edges: int, place: str) -> npt.NDArray[np.float64] | None:
    if weight is None:
        return None
    values = np.asarray(weight)
    if values.shape != (num_edges,) or values.dtype.kind not in "iufb":
        raise InputError(
            f"{place}: edge weights have shape {values.shape}; give one number per edge ({num_edges})"
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"{place}: the weight of edge {int(np.argmin(np.isfinite(values)))} is no finite number"
        )
    return values.astype(np.float64)
