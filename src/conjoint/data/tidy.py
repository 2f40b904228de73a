"""From raw arrays to the one form of graph that later stages expect, with a note for each thing assumed."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.graph.sparse import to_csr, to_scipy

# CSR spends 12 bytes on an entry where dense spends 4, and products on it cost more per entry:
# below this share of non-zeros it wins clearly. PubMed (0.1002) is meant to be on the sparse side.
SPARSE_BELOW = 0.15

SparseChoice = Literal["auto"] | bool


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
    key = source.astype(np.int64) * num_nodes + target.astype(np.int64)
    one_way, value = _merge(key, weight, np.add)
    repeated = len(key) - len(one_way)
    if repeated:
        merged = "merged (weights added)" if weight is not None else "dropped"
        notes.append(f"{merged} {count(repeated, 'duplicate edge')}")
    back = (one_way % num_nodes) * num_nodes + one_way // num_nodes
    both, value = _merge(
        np.concatenate([one_way, back]), None if value is None else np.concatenate([value, value]), np.maximum
    )
    if len(both) != len(one_way):
        edges = len(both) // 2
        notes.append(f"made undirected: {count(edges, 'edge')} became {len(both)} entries")
    edge_index = torch.from_numpy(np.stack([both // num_nodes, both % num_nodes]))
    return edge_index, None if value is None else torch.from_numpy(value.astype(np.float32))


def _merge(
    key: npt.NDArray[np.int64], value: npt.NDArray[Any] | None, join: np.ufunc
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any] | None]:
    """Sorted unique keys, values of equal keys joined."""
    if value is None:
        key = np.sort(key)
        return key[np.diff(key, prepend=-1) != 0], None
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order].astype(np.float64)
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    return key[starts], join.reduceat(value, starts) if len(starts) else value


def pack_features(x: Any, sparse: SparseChoice) -> Tensor:
    """Array, SciPy matrix or tensor -> float32 tensor, CSR or dense by ``sparse`` ("auto": by density)."""
    if sparse not in ("auto", True, False):
        raise InputError(f"sparse={sparse!r} is not a choice; take 'auto', True or False")
    if isinstance(x, Tensor):
        x = to_scipy(x) if x.layout == torch.sparse_csr else x.detach().cpu().numpy()
    is_sparse = hasattr(x, "tocsr")
    x = x.tocsr() if is_sparse else x
    stored = x.data if is_sparse else x
    if not np.isfinite(stored).all():
        raise InputError("features hold NaN or infinite values; fill or drop them first")
    share = np.count_nonzero(stored) / max(1, x.shape[0] * x.shape[1])
    if sparse is True or (sparse == "auto" and share < SPARSE_BELOW):
        return to_csr(x)
    return torch.from_numpy(np.ascontiguousarray(x.toarray() if is_sparse else x, dtype=np.float32))


def make_data(
    *,
    x: Tensor | None,
    edge_index: Tensor,
    y: npt.NDArray[Any] | Tensor,
    node_ids: npt.NDArray[Any],
    class_names: list[str],
    name: str,
    notes: list[str],
    edge_weight: Tensor | None = None,
    **extra: Any,
) -> Data:
    """The PyG ``Data`` that every loader returns. ``extra`` are attributes that only some graphs have."""
    labels = torch.as_tensor(y, dtype=torch.int64)
    data = Data(x=x, edge_index=edge_index, y=labels)
    data.num_nodes = len(labels)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    data.node_ids = node_ids
    data.class_names = class_names
    data.name = name
    data.notes = notes
    for key, value in extra.items():
        setattr(data, key, value)
    return data


def count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
