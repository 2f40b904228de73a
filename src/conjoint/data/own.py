"""The user's own graph: an edge table and a node table, or one NPZ or GraphML file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conjoint.data.from_tables import graph_from_tables, name_columns
from conjoint.data.graphml import read_graphml
from conjoint.data.ids import whole_if_all_are
from conjoint.data.limits import MAX_BYTES
from conjoint.data.npz_graph import read_npz_graph
from conjoint.data.read_table import read_table
from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import SparseChoice

if TYPE_CHECKING:
    import polars as pl


def read_graph(
    edges: str | os.PathLike[str],
    nodes: str | os.PathLike[str] | None = None,
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
    kind = file.name.lower().removesuffix(".gz").rpartition(".")[2]
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
    node_table: pl.DataFrame | None
    if kind == "npz":
        _alone(nodes, file)
        return read_npz_graph(file, title, max_bytes).with_features(features, seed, sparse)
    if kind == "graphml":
        _alone(nodes, file)
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


def _alone(nodes: object, file: Path) -> None:
    if nodes is not None:
        raise InputError(f"{file} holds the whole graph; leave nodes= out")
