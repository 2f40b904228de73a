"""The user's own graph: an edge table and a node table, an NPZ or a GraphML; and nodes that came later."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import Faults, InputError, argument
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice, is_sparse
from .columns import Place, whole_if_all_are
from .from_tables import READING, Columns, graph_from_tables, name_columns
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
    text_model: str | None = None,
    categorical: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    missing: str | Sequence[str] | None = None,
    as_classes: bool = False,
    features: str | None = None,
    sparse: SparseChoice = "auto",
    standardise: bool = True,
    drop_unknown: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    name: str | None = None,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
    reading: int = READING,
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
        text, categorical, numeric, ignore: columns to read as words (TF-IDF), as categories (one-hot), as
            numbers, or not at all. What the others are, their cells tell: numbers, dates, yes and no,
            categories, text, identifiers, which are left out. ``Graph.columns`` says what each was taken for.
        text_model: a folder or an installed package with a sentence-embedding model, whose vectors stand for
            texts in place of TF-IDF (extra ``sentences``).
        missing: cells that mean that nothing is known; by default an empty one, NA, N/A, NaN, null, ?, -, ...
        as_classes: take every value of the label as a class, though it looks like a quantity or a name.
        features: structural features by name (``spectral:128``) in place of the columns.
        standardise: False keeps numeric columns as they are.
        drop_unknown: leave out edges whose ends are not in ``nodes``, instead of refusing them.
        delimiter, header, encoding: None finds the delimiter, takes a table whose first line is all numbers
            as one without a header, and reads UTF-8, or UTF-16 that says so. ``header`` is of the edges.
        reading: the rules for what columns mean; 1 is how runs were read that name none.
    """
    given = {key: value for key, value in locals().items() if key not in ("sparse", "seed")}
    return read_own(**given).with_features(features, seed, sparse)


@dataclass(frozen=True)
class Reading:
    """The arguments of `read_graph` beside its files: what columns mean, and how tables are written."""

    columns: Columns
    features: str | None = None
    standardise: bool = True
    drop_unknown: bool = False
    delimiter: str | None = None
    header: bool | None = None
    encoding: str | None = None
    name: str | None = None
    max_bytes: int = MAX_BYTES

    @staticmethod
    def of(given: Mapping[str, Any]) -> "Reading":
        own = given.keys() & {field.name for field in fields(Reading)}
        columns = name_columns(**{name: value for name, value in given.items() if name not in own})
        return Reading(columns, **{name: given[name] for name in own})

    @property
    def form(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "encoding": self.encoding}

    @property
    def header_of_nodes(self) -> bool | None:
        return True if self.columns.reading == 1 else None

    def title(self, edges: File) -> str:
        return self.name or Path(edges).name.partition(".")[0]


def read_own(edges: File, nodes: File | None = None, **given: Any) -> Graph:
    """What :func:`read_graph` gives, but for features that are made from the edges."""
    file, reading = Path(edges), Reading.of(given)
    title, columns, max_bytes = reading.title(edges), reading.columns, reading.max_bytes
    kind = kind_of(file)
    if kind in WHOLE_GRAPH and nodes is not None:
        raise InputError(f"{file} holds the whole graph; leave out {argument('nodes', nodes)}")
    if kind == "npz":
        return read_npz_graph(file, title, max_bytes)
    notes: list[str] = []
    node_table: pl.DataFrame | None = None
    if kind == "graphml":
        edge_table, node_table = read_graphml(file, max_bytes)
        places = Place(f"{file} (edges)"), Place(f"{file} (nodes)")
    else:
        faults, tables = Faults(), list[pl.DataFrame]()
        for table, head in ((file, reading.header), (nodes, reading.header_of_nodes)):
            with faults.noted():
                if table is not None:
                    form = reading.form | {"header": head, "max_bytes": max_bytes}
                    tables.append(read_table(table, **form, notes=notes))
        faults.raise_any()
        edge_table, *rest = tables
        node_table = rest[0] if rest else None
        places = Place(str(file)), Place(str(nodes))
    # Numbers take half the room of text; the table is let go before the edges are sorted.
    edge_table = edge_table.select(whole_if_all_are(column) for column in edge_table.iter_columns())
    return graph_from_tables(
        edge_table,
        node_table,
        columns,
        places=places,
        name=title,
        use_columns=reading.features is None,
        standardise=reading.standardise,
        drop_unknown=reading.drop_unknown,
        notes=notes,
    )


def read_new_nodes(
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
            "features; train on the graph with them instead"
        )
    known = {field.name for kind in (Columns, Reading) for field in fields(kind)}
    reading = Reading.of({name: value for name, value in given.items() if name in known})
    form, columns = reading.form | {"max_bytes": max_bytes}, reading.columns
    known_edges, new_edges = (
        read_table(file, **form, header=reading.header) for file in (given["edges"], edges)
    )
    known_nodes, new_nodes = (
        read_table(file, **form, header=reading.header_of_nodes) for file in (given["nodes"], nodes)
    )
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
        places=(
            Place(str(given["edges"]), known_edges.height, str(edges)),
            Place(str(given["nodes"]), known_nodes.height, str(nodes)),
        ),
        name=before.name,
        standardise=reading.standardise,
        drop_unknown=reading.drop_unknown,
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
