"""Graphs that are already in Python: PyG, SciPy, NetworkX, pandas, polars."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch
from torch import Tensor

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice
from .arrays import graph_from_arrays
from .benchmarks import load_graph
from .columns import Place
from .from_tables import graph_from_tables, name_columns, text_table

if TYPE_CHECKING:
    from torch_geometric.data import Data


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
    **columns: Any,
) -> Graph:
    """A graph that is already in Python as a :class:`Graph`, made undirected and simple.

    Args:
        graph: PyG ``Data``; a SciPy sparse adjacency matrix (values other than 1 become edge weights);
            a NetworkX graph; or a pandas or polars table of edges.
        nodes: a pandas or polars table of nodes, beside a table of edges.
        x, y, node_ids, class_names: features, labels (below 0, NaN, None or "" = unlabelled) and ids, one per
            node, for SciPy; for PyG they replace what the ``Data`` holds.
        features, sparse, standardise, seed: as in :func:`conjoint.data.read_graph`.
        columns: which column (table) or attribute (NetworkX) is what: id=, source=, target=, weight=, label=,
            time=, split=, text=, text_model=, categorical=, numeric=, ignore=, missing=, as_classes=,
            reading=, as in :func:`conjoint.data.read_graph`.
    """
    given = {"x": x, "y": y, "node_ids": node_ids, "class_names": class_names}
    kinds = name_columns(**columns)
    options: dict[str, Any] = {"use_columns": features is None, "standardise": standardise}
    if isinstance(graph, Graph):
        made = graph
    elif _is_pyg(graph):
        made = _from_pyg(graph, name, given)
    elif sp.issparse(graph):
        made = _from_scipy(graph, name, given)
    elif any(value is not None for value in given.values()):
        raise InputError("x, y, node_ids and class_names go with SciPy or PyG; use nodes= or attributes")
    elif hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        edges, table = _tables_of_networkx(graph)
        options["places"] = Place("the graph's edges"), Place("the graph's nodes")
        made = graph_from_tables(edges, table, kinds, name=name, **options)
    elif hasattr(graph, "columns"):
        node_table = None if nodes is None else _table(nodes, "nodes")
        options["places"] = Place("edges"), Place("nodes")
        made = graph_from_tables(_table(graph, "edges"), node_table, kinds, name=name, **options)
    else:
        kind = type(graph).__name__
        raise InputError(f"a {kind} is no graph known here; give PyG, SciPy, NetworkX or tables")
    return made.with_features(features, seed, sparse)


def _is_pyg(graph: Any) -> bool:
    """Nobody has an object of PyG who has not imported it, which takes longer than torch."""
    pyg = sys.modules.get("torch_geometric.data")
    return pyg is not None and isinstance(graph, pyg.Data)


def _from_pyg(data: "Data", name: str, given: dict[str, Any]) -> Graph:
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
    masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    plain = [np.flatnonzero(m.cpu().numpy()) for m in masks if isinstance(m, Tensor) and m.dim() == 1]
    return graph_from_arrays(
        data.edge_index.cpu().numpy(),
        place="the PyG Data",
        name=name,
        split=(plain[0], plain[1], plain[2]) if len(plain) == 3 else None,
        num_nodes=int(data.num_nodes or 0),
        weight=None if weight is None else weight.cpu().numpy(),
        **merged,
    )


def _from_scipy(matrix: Any, name: str, given: dict[str, Any]) -> Graph:
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the adjacency matrix has shape {matrix.shape}; it must be square")
    coo = matrix.tocoo()
    stored = coo.data != 0
    weight = coo.data[stored]
    return graph_from_arrays(
        np.stack([coo.row[stored], coo.col[stored]]).astype(np.int64),
        place="the SciPy matrix",
        name=name,
        num_nodes=matrix.shape[0],
        weight=None if (weight == 1).all() else weight,
        **given,
    )


def to_pyg(graph: Graph) -> "Data":
    """Plain PyG ``Data``: x, edge_index, y, edge_weight if there is one, masks of the published split."""
    from torch_geometric.data import Data  # takes longer to import than torch: only where it is asked for

    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    data.num_nodes = graph.num_nodes
    if graph.edge_weight is not None:
        data.edge_weight = graph.edge_weight
    for split in list(graph.known_splits.values())[:1]:
        for part, nodes in (("train", split.train), ("val", split.val), ("test", split.reveal_test())):
            mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
            mask[nodes] = True
            data[f"{part}_mask"] = mask
    return data


def load(name: str, **options: Any) -> "Data":
    """One of the paper's graphs as plain PyG ``Data``, with masks where a split was published with it.

    The arguments are those of :func:`load_graph`, whose result knows more: ids, class names, notes, splits.
    """
    return to_pyg(load_graph(name, **options))


def _table(frame: Any, argument: str) -> pl.DataFrame:
    """A pandas or polars table as text columns, as a file would give them."""
    table = frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame, include_index=False)
    if table.height == 0:
        raise InputError(f"{argument} has no rows")
    for name, kind in table.schema.items():
        if kind.is_nested() or kind == pl.Object:
            raise InputError(
                f"{argument}: column {name!r} holds lists or objects; give one column per number"
            )
    # Missing numbers of pandas are NaN; a cell without a value is what they mean.
    return table.with_columns(pl.selectors.float().fill_nan(None)).select(pl.all().cast(pl.String))


def _tables_of_networkx(graph: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    nodes = [{"id": node, **attributes} for node, attributes in graph.nodes(data=True)]
    edges = [{"source": a, "target": b, **attributes} for a, b, attributes in graph.edges(data=True)]
    for rows, what in ((edges, "edges"), (nodes, "nodes")):
        if not rows:
            raise InputError(f"the NetworkX graph has no {what}")
    return text_table(edges, "the graph's edges"), text_table(nodes, "the graph's nodes")
