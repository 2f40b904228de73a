"""The user's own graph: an edge table and a node table, an NPZ or a GraphML; and nodes that came later."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice, is_sparse
from .columns import whole_if_all_are
from .from_tables import Columns, graph_from_tables, name_columns
from .graphml import read_graphml
from .npz import read_npz_graph
from .read_table import MAX_BYTES, read_table

File = str | os.PathLike[str]
WHOLE_GRAPH = ("npz", "graphml")  # files that hold nodes and edges


def kind_of(file: File) -> str:
    """csv, parquet, npz, ...: what a file is by its name."""
    return Path(file).name.lower().removesuffix(".gz").rpartition(".")[2]


def read_graph(
    edges: File,
    nodes: File | None = None,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    label: str | None = None,
    time: str | None = None,
    split: str | None = None,
    text: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    features: str | None = None,
    sparse: SparseChoice = "auto",
    standardise: bool = True,
    drop_unknown: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    name: str | None = None,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
) -> Graph:
    """A graph from the user's files, checked, in the same form as :func:`conjoint.data.load` gives.

    Args:
        edges: CSV or TSV (gzipped or not) or Parquet with one edge per row; or an .npz or .graphml file that
            holds the whole graph (then without ``nodes``).
        nodes: one row per node, with a header. Without it the nodes are the ids that the edges name.
        id, source, target, weight, label, time, split: column names. The id column is else one called id,
            node_id or node, else the first; the ends of an edge source/target, src/dst or from/to, else the
            first two; the label is else a column called label. Weights are used only when named. An empty
            label means unlabelled. ``split`` holds train, val, test or nothing.
        text, categorical, ignore: columns to read as words (TF-IDF), as categories (one-hot), or not at all.
            The others are numbers (standardised) or, if they have few different values, categories.
        features: structural features by name (``spectral:128``) in place of the columns.
        standardise: False keeps numeric columns as they are.
        drop_unknown: leave out edges whose ends are not in ``nodes``, instead of refusing them.
        delimiter, header: None finds the delimiter, and takes an edge table whose first line is all numbers
            as one without a header.
    """
    file = Path(edges)
    title = name or file.name.partition(".")[0]
    columns = name_columns(
        id=id,
        source=source,
        target=target,
        weight=weight,
        label=label,
        time=time,
        split=split,
        text=text,
        categorical=categorical,
        ignore=ignore,
    )
    kind = kind_of(file)
    if kind in WHOLE_GRAPH and nodes is not None:
        raise InputError(f"{file} holds the whole graph; leave nodes= out")
    if kind == "npz":
        return read_npz_graph(file, title, max_bytes).with_features(features, seed, sparse)
    node_table: pl.DataFrame | None
    if kind == "graphml":
        edge_table, node_table = read_graphml(file, max_bytes)
        places = (f"{file} (edges)", f"{file} (nodes)")
    else:
        edge_table = read_table(file, delimiter=delimiter, header=header, max_bytes=max_bytes)
        node_table = None if nodes is None else read_table(nodes, delimiter=delimiter, max_bytes=max_bytes)
        places = (str(file), str(nodes))
    # Numbers take half the room of text; the table is let go before the edges are sorted.
    edge_table = edge_table.select(whole_if_all_are(column) for column in edge_table.iter_columns())
    made = graph_from_tables(
        edge_table,
        node_table,
        columns,
        places=places,
        name=title,
        use_columns=features is None,
        standardise=standardise,
        drop_unknown=drop_unknown,
    )
    return made.with_features(features, seed, sparse)


def read_grown(
    before: Graph, given: Mapping[str, Any], *, nodes: File, edges: File, max_bytes: int = MAX_BYTES
) -> Graph:
    """The graph `before`, read with the arguments `given` to `read_graph`, and the new tables in one.

    Known nodes come first, in their order; words, categories, scales and classes are those of the known
    nodes, so that their features stay what they were. New nodes need the same feature columns; a label may be
    missing.
    """
    whole = kind_of(given["edges"]) in WHOLE_GRAPH
    if whole or given.get("nodes") is None or given.get("features") is not None:
        raise InputError(
            f"{nodes}: new nodes can join a graph that was read from an edge table and a node table with "
            "features; train on the grown graph instead"
        )
    form: dict[str, Any] = {"delimiter": given.get("delimiter"), "max_bytes": max_bytes}
    header = {"header": given["header"]} if "header" in given else {}
    known_edges, new_edges = (read_table(file, **form, **header) for file in (given["edges"], edges))
    known_nodes, new_nodes = (read_table(file, **form) for file in (given["nodes"], nodes))
    named = [field.name for field in fields(Columns) if field.name in given]
    columns = name_columns(**{name: given[name] for name in named})
    label = columns.label or ("label" if "label" in known_nodes.columns else None)
    # The time and the part of a node served training; a new one has neither.
    served = [name for name in (columns.time, columns.split) if name is not None]
    joined_nodes = pl.concat(
        [known_nodes, _like(known_nodes, new_nodes, (label, *served, *columns.ignore), str(nodes))]
    )
    joined_edges = pl.concat([known_edges, _like(known_edges, new_edges, (), str(edges))])
    made = graph_from_tables(
        joined_edges.select(whole_if_all_are(column) for column in joined_edges.iter_columns()),
        joined_nodes,
        replace(columns, time=None, split=None, ignore=(*columns.ignore, *served)),
        places=(f"{given['edges']} with {edges}", f"{given['nodes']} with {nodes}"),
        name=before.name,
        standardise=given.get("standardise", True),
        drop_unknown=given.get("drop_unknown", False),
        learn_from=known_nodes.height,
    )
    return made.with_features(None, sparse=is_sparse(before.x))


def _like(known: pl.DataFrame, new: pl.DataFrame, spare: Sequence[str | None], place: str) -> pl.DataFrame:
    """The columns of the known table; those in `spare` may be missing, others of the new one are left out."""
    missing = next((name for name in known.columns if name not in new.columns and name not in spare), None)
    if missing is not None:
        raise InputError(f"{place} has no column {missing!r}, which the training table has; add it")
    empty = pl.lit(None, pl.String)
    return new.select(pl.col(c) if c in new.columns else empty.alias(c) for c in known.columns)
