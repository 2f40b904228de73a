"""Graphs that are already in Python: PyG, SciPy, NetworkX, pandas, polars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Data

from conjoint.data.arrays import graph_from_arrays, use_split_if_sound
from conjoint.data.from_tables import graph_from_tables, name_columns
from conjoint.data.raw import RawGraph, assemble
from conjoint.data.tidy import SparseChoice
from conjoint.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def from_any(
    graph: Any,
    nodes: Any = None,
    *,
    x: Any = None,
    y: Any = None,
    node_ids: Any = None,
    class_names: Sequence[str] | None = None,
    features: str | None = None,
    sparse: SparseChoice = "auto",
    standardise: bool = True,
    name: str = "graph",
    seed: int = 0,
    **columns: str | Sequence[str] | None,
) -> Data:
    """A graph that is already in Python, in the form that :func:`conjoint.data.load` gives.

    Args:
        graph: PyG ``Data``; a SciPy sparse adjacency matrix (values other than 1 become edge weights);
            a NetworkX graph; or a pandas or polars table of edges.
        nodes: a pandas or polars table of nodes, beside a table of edges.
        x, y, node_ids, class_names: features, labels (below 0, NaN, None or "" = unlabelled) and ids, one per
            node, for SciPy; for PyG they replace what the ``Data`` holds.
        features, sparse, standardise, seed: as in :func:`conjoint.data.read_graph`.
        columns: which column (table) or attribute (NetworkX) is what: id=, source=, target=, weight=, label=,
            time=, split=, text=, categorical=, ignore=, as in :func:`conjoint.data.read_graph`.
    """
    given = {"x": x, "y": y, "node_ids": node_ids, "class_names": class_names}
    kinds = name_columns(**columns)
    options: dict[str, Any] = {"use_columns": features is None, "standardise": standardise}
    if isinstance(graph, Data):
        raw = _from_pyg(graph, given)
    elif sp.issparse(graph):
        raw = _from_scipy(graph, given)
    elif any(value is not None for value in given.values()):
        raise InputError("x, y, node_ids and class_names go with SciPy or PyG; use nodes= or attributes")
    elif hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        edges, table = _tables_of_networkx(graph)
        places = ("the graph's edges", "the graph's nodes")
        raw = graph_from_tables(edges, table, kinds, places=places, notes=[], **options)
    elif hasattr(graph, "columns"):
        node_table = None if nodes is None else _table(nodes, "nodes")
        raw = graph_from_tables(
            _table(graph, "edges"), node_table, kinds, places=("edges", "nodes"), notes=[], **options
        )
    else:
        raise InputError(
            f"a {type(graph).__name__} is no graph known here; give PyG, SciPy, NetworkX or tables"
        )
    return assemble(raw, name=name, features=features, sparse=sparse, seed=seed)


def _from_pyg(data: Data, given: dict[str, Any]) -> RawGraph:
    if data.edge_index is None:
        raise InputError("the PyG Data has no edge_index")
    own = {key: getattr(data, key, None) for key in given}
    merged = {key: own[key] if value is None else value for key, value in given.items()}
    weight = getattr(data, "edge_weight", None)
    if weight is None and getattr(data, "edge_attr", None) is not None:
        weight = data.edge_attr.squeeze(-1) if data.edge_attr.dim() == 2 else data.edge_attr
        weight = weight if weight.dim() == 1 else None
    y = merged["y"]
    if isinstance(y, Tensor):
        merged["y"] = (y.squeeze(-1) if y.dim() == 2 else y).cpu().numpy()
    raw = graph_from_arrays(
        data.edge_index.cpu().numpy(),
        place="the PyG Data",
        num_nodes=int(data.num_nodes or 0),
        weight=None if weight is None else weight.cpu().numpy(),
        **merged,
    )
    masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    if all(isinstance(mask, Tensor) and mask.dim() == 1 for mask in masks):
        train, val, test = (np.flatnonzero(mask.cpu().numpy()) for mask in masks if mask is not None)
        use_split_if_sound(raw, train, val, test)
    return raw


def _from_scipy(matrix: Any, given: dict[str, Any]) -> RawGraph:
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the adjacency matrix has shape {matrix.shape}; it must be square")
    coo = matrix.tocoo()
    stored = coo.data != 0
    weight = coo.data[stored]
    return graph_from_arrays(
        np.stack([coo.row[stored], coo.col[stored]]).astype(np.int64),
        place="the SciPy matrix",
        num_nodes=matrix.shape[0],
        weight=None if (weight == 1).all() else weight,
        **given,
    )


def _table(frame: Any, argument: str) -> "pl.DataFrame":
    """A pandas or polars table as text columns, as a file would give them."""
    import polars as pl

    table = frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame, include_index=False)
    if table.height == 0:
        raise InputError(f"{argument} has no rows")
    nested = [name for name, kind in table.schema.items() if kind.is_nested() or kind == pl.Object]
    if nested:
        raise InputError(
            f"{argument}: column {nested[0]!r} holds lists or objects; give one column per number"
        )
    # Missing numbers of pandas are NaN; a cell without a value is what they mean.
    return table.with_columns(pl.selectors.float().fill_nan(None)).select(pl.all().cast(pl.String))


def _tables_of_networkx(graph: Any) -> tuple["pl.DataFrame", "pl.DataFrame"]:
    import polars as pl

    def table(rows: list[dict[str, Any]], what: str) -> pl.DataFrame:
        if not rows:
            raise InputError(f"the NetworkX graph has no {what}")
        names = dict.fromkeys(key for row in rows for key in row)
        cells = {
            str(name): [None if row.get(name) is None else str(row[name]) for row in rows] for name in names
        }
        return pl.DataFrame(cells, schema=dict.fromkeys(map(str, names), pl.String))

    nodes = [{"id": node, **attributes} for node, attributes in graph.nodes(data=True)]
    edges = [{"source": a, "target": b, **attributes} for a, b, attributes in graph.edges(data=True)]
    return table(edges, "edges"), table(nodes, "nodes")
