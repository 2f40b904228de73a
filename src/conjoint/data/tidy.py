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
    key = source.astype(np.int64) * num_nodes
    key += target
    one_way, value = _merge(key, weight, np.add)
    repeated = len(key) - len(one_way)
    del key  # with many edges every array counts: 80 MB for 10 million
    if repeated:
        merged = "merged (weights added)" if weight is not None else "dropped"
        notes.append(f"{merged} {count(repeated, 'duplicate edge')}")
    ends = _unpack(one_way, num_nodes)
    doubled = np.concatenate([one_way, ends[1] * num_nodes + ends[0]])
    directed = len(one_way)
    del ends, one_way
    both, value = _merge(doubled, None if value is None else np.concatenate([value, value]), np.maximum)
    del doubled
    if len(both) != directed:
        notes.append(f"made undirected: {count(len(both) // 2, 'edge')} became {len(both)} entries")
    return torch.from_numpy(_unpack(both, num_nodes)), None if value is None else torch.from_numpy(
        value.astype(np.float32)
    )


def _merge(
    key: npt.NDArray[np.int64], value: npt.NDArray[Any] | None, join: np.ufunc
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any] | None]:
    """Sorted unique keys, values of equal keys joined. Without values ``key`` itself is sorted in place."""
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
