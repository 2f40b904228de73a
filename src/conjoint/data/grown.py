"""The user's own graph with nodes and edges that came later, read as the first ones were."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conjoint.data.from_tables import Columns, graph_from_tables, name_columns
from conjoint.data.ids import whole_if_all_are
from conjoint.data.limits import MAX_BYTES
from conjoint.data.read_table import read_table
from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import is_sparse

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("id", "source", "target", "weight", "label", "time", "split", "text", "categorical", "ignore")


def read_grown(
    before: Graph,
    given: Mapping[str, Any],
    *,
    nodes: str | os.PathLike[str],
    edges: str | os.PathLike[str],
    max_bytes: int = MAX_BYTES,
) -> Graph:
    """The graph `before`, read with the arguments `given` to `read_graph`, and the new tables in one.

    Known nodes come first, in their order; words, categories, scales and classes are those of the known
    nodes, so that their features stay what they were. New nodes need the same feature columns; a label may be
    missing.
    """
    import polars as pl

    kind = Path(str(given["edges"])).name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind in ("npz", "graphml") or given.get("nodes") is None or given.get("features") is not None:
        raise InputError(
            f"{nodes}: new nodes can join a graph that was read from an edge table and a node table with "
            "features; train on the grown graph instead"
        )
    form = {name: given[name] for name in ("delimiter", "header") if name in given}
    known_edges = read_table(Path(str(given["edges"])), max_bytes=max_bytes, **form)
    new_edges = read_table(Path(edges), max_bytes=max_bytes, **form)
    form.pop("header", None)
    known_nodes = read_table(Path(str(given["nodes"])), max_bytes=max_bytes, **form)
    new_nodes = read_table(Path(nodes), max_bytes=max_bytes, **form)
    columns = name_columns(**{name: given[name] for name in COLUMNS if name in given})
    label = columns.label or ("label" if "label" in known_nodes.columns else None)
    spare = {label, columns.time, columns.split, *columns.ignore}
    # The time and the part of a node served training; a new one has neither.
    plain = replace(columns, time=None, split=None, ignore=_ignored(columns))
    joined_edges = pl.concat([known_edges, _like(known_edges, new_edges, set(), str(edges))])
    joined_edges = joined_edges.select(whole_if_all_are(column) for column in joined_edges.iter_columns())
    made = graph_from_tables(
        joined_edges,
        pl.concat([known_nodes, _like(known_nodes, new_nodes, spare, str(nodes))]),
        plain,
        places=(f"{given['edges']} with {edges}", f"{given['nodes']} with {nodes}"),
        name=str(before.name),
        standardise=given.get("standardise", True),
        drop_unknown=given.get("drop_unknown", False),
        learn_from=known_nodes.height,
    )
    return made.with_features(None, sparse=is_sparse(before.x))


def _ignored(columns: Columns) -> tuple[str, ...]:
    return (*columns.ignore, *(name for name in (columns.time, columns.split) if name is not None))


def _like(known: "pl.DataFrame", new: "pl.DataFrame", spare: set[str | None], place: str) -> "pl.DataFrame":
    """The columns of the known table; those in `spare` may be missing, others of the new one are left out."""
    import polars as pl

    if new.height == 0:
        raise InputError(f"{place}: it has no rows; give at least one")
    parts = []
    for name in known.columns:
        if name in new.columns:
            parts.append(new[name].cast(known[name].dtype))
        elif name in spare:
            parts.append(pl.Series(name, [None] * new.height, dtype=known[name].dtype))
        else:
            raise InputError(f"{place} has no column {name!r}, which the training table has; add it")
    return pl.DataFrame(parts)
