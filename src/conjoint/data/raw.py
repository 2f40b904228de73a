"""What every reader hands over, and how it becomes the ``Data`` that leaves this package."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from conjoint.data.splits import Split, build_split
from conjoint.data.tidy import SparseChoice, make_data, pack_features, tidy_edges
from conjoint.errors import InputError
from conjoint.graph.structural import structural_features

Index = npt.NDArray[Any]


@dataclass
class RawGraph:
    """A graph as its source gives it: rows 0..N-1, edges as pairs of rows, label -1 = unlabelled."""

    source: Index
    target: Index
    labels: npt.NDArray[np.int64]
    node_ids: npt.NDArray[Any]
    class_names: list[str]
    x: Any = None  # array, SciPy matrix or tensor; None when the source has no features
    weight: npt.NDArray[Any] | None = None
    time: npt.NDArray[Any] | None = None
    feature_names: list[str] | None = None
    splits: dict[str, tuple[Index, Index, Index]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def assemble(
    raw: RawGraph,
    *,
    name: str,
    features: str | None = None,
    sparse: SparseChoice = "auto",
    seed: int = 0,
) -> Data:
    """Clean the edges, pack or make the features, seal the splits, report what was assumed."""
    notes = list(raw.notes)
    num_nodes = len(raw.labels)
    edge_index, weight = tidy_edges(raw.source, raw.target, num_nodes, raw.weight, notes)
    if edge_index.size(1) == 0:
        raise InputError(f"{name} has no edges between different nodes; attention needs some")
    if features is not None:
        x = structural_features(features, edge_index, num_nodes, seed)
        notes.append(f"features: {features} made from the edges, seed {seed}")
        if raw.x is not None:
            notes.append("the graph's own features were set aside")
    elif raw.x is None:
        why = f" ({'; '.join(raw.notes)})" if raw.notes else ""
        raise InputError(
            f"{name} has no node features{why}; ask for structural ones, for example features='spectral:128'"
        )
    else:
        x = pack_features(raw.x, sparse)
    extra: dict[str, Any] = {
        "known_splits": {key: _seal(key, raw, parts) for key, parts in raw.splits.items()}
    }
    if raw.time is not None:
        extra["node_time"] = raw.time
    if raw.feature_names is not None and features is None:
        extra["feature_names"] = raw.feature_names
    return make_data(
        x=x,
        edge_index=edge_index,
        edge_weight=weight,
        y=raw.labels,
        node_ids=raw.node_ids,
        class_names=raw.class_names,
        name=name,
        notes=notes,
        **extra,
    )


def _seal(name: str, raw: RawGraph, parts: tuple[Index, Index, Index]) -> Split:
    # Only the authors' release is known to share nodes between validation and test.
    return build_split(*parts, labels=raw.labels, name=name, overlap_is_known=name == "released")
