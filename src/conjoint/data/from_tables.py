"""An edge table and a node table, all text, into a graph: where a column's meaning is decided."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..errors import InputError
from ..graph.graph import Graph, build_graph, without_label
from ..text import count
from .columns import (
    features_of,
    ids_of,
    ids_of_edges,
    labels_of,
    numbers_of,
    require_unique,
    rows_of,
    split_of,
)

Array = npt.NDArray[Any]
EDGE_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"))
# A table of this many cells needs some 3 GB; more comes from a file that was made to swell.
MAX_CELLS = 200_000_000
ID_NAMES = ("id", "node_id", "node")


@dataclass(frozen=True)
class Columns:
    """Which column of the user's tables is what. None: found by its usual name, else by its place."""

    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    label: str | None = None
    time: str | None = None
    split: str | None = None
    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def edge_ends(self, names: list[str], place: str, notes: list[str]) -> tuple[str, str]:
        """The columns with the two ends of an edge, among those of the edge table."""
        _require(names, self.weight, "weight", place)
        if self.source is not None or self.target is not None:
            if self.source is None or self.target is None:
                raise InputError("source= and target= go together; name both columns or neither")
            _require(names, self.source, "source", place)
            _require(names, self.target, "target", place)
            return self.source, self.target
        lower = {name.lower(): name for name in names}
        for one, other in EDGE_ENDS:
            if one in lower and other in lower:
                return lower[one], lower[other]
        first, second = names[:2]
        if not first.startswith("column_"):
            notes.append(f"edges read from the first two columns, {first!r} and {second!r}")
        return first, second

    def in_node_table(
        self, names: list[str], place: str, notes: list[str]
    ) -> tuple["Columns", str, list[str]]:
        """The same with the label found, the column with the ids, and the columns of features."""
        for role in ("id", "label", "time", "split"):
            _require(names, getattr(self, role), role, place)
        for name in (*self.text, *self.categorical, *self.ignore):
            _require(names, name, "text, categorical or ignore", place)
        id, label = self.id, self.label
        if id is None:
            lower = {name.lower(): name for name in names}
            id = next((lower[name] for name in ID_NAMES if name in lower), None)
        if id is None:
            id = names[0]
            notes.append(f"node ids read from the first column, {id!r}")
        if label is None and "label" in names:
            label = "label"
            notes.append("labels taken from column 'label'")
        taken = {id, label, self.time, self.split, *self.ignore}
        return replace(self, label=label), id, [name for name in names if name not in taken]


def text_table(rows: Sequence[Mapping[Any, Any]], place: str) -> pl.DataFrame:
    """Rows of values by name as a table of text; a cell without a value is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) * len(rows) > MAX_CELLS:
        raise InputError(f"{place} has {len(rows):,} elements with {len(names):,} different keys; too many")
    cells = {str(name): [None if row.get(name) is None else str(row[name]) for row in rows] for name in names}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


def name_columns(**given: str | Sequence[str] | None) -> Columns:
    """Keyword arguments as :class:`Columns`; one name may stand for a list of one."""
    known = {field.name for field in fields(Columns)}
    stray = next((name for name in given if name not in known), None)
    if stray is not None:
        raise InputError(f"{stray}= is no argument here; columns are named with {', '.join(sorted(known))}")
    lists = {
        name: (value,) if isinstance(value, str) else tuple(value or ())
        for name, value in given.items()
        if name in ("text", "categorical", "ignore")
    }
    return Columns(**{**given, **lists})  # type: ignore[arg-type]


def graph_from_tables(
    edges: pl.DataFrame,
    nodes: pl.DataFrame | None,
    columns: Columns,
    *,
    places: tuple[str, str],
    name: str,
    use_columns: bool = True,
    standardise: bool = True,
    drop_unknown: bool = False,
    learn_from: int | None = None,
) -> Graph:
    """Tables of text (or Int64) columns -> a graph. ``places`` are what errors call the two tables.

    With ``learn_from``, the first so many nodes decide what features and classes there are.
    """
    edge_place, node_place = places
    notes: list[str] = []
    ends = columns.edge_ends(edges.columns, edge_place, notes)
    unused = [c for c in edges.columns if c not in (*ends, columns.weight)]
    if unused:
        notes.append(f"edge {'column' if len(unused) == 1 else 'columns'} not used: {', '.join(unused[:5])}")
    parts: dict[str, Any] = {}
    if nodes is None:
        refuse_node_columns(columns)
        ids = ids_of_edges([edges], ends, edge_place)
        parts["labels"] = np.full(len(ids), -1)
    else:
        found, id, features = columns.in_node_table(nodes.columns, node_place, notes)
        ids = node_ids(nodes[id], node_place)
        parts = node_parts(nodes, found, node_place, notes, learn_from)
        if use_columns and features:
            parts["x"], parts["feature_names"] = features_of(
                nodes.select(features),
                node_place,
                notes,
                text=columns.text,
                categorical=columns.categorical,
                standardise=standardise,
                learn_from=learn_from,
            )
    ((source, target, weight),) = edge_rows([edges], ends, columns.weight, ids, places, drop_unknown, notes)
    return build_graph(source, target, name=name, ids=id_array(ids), weight=weight, notes=notes, **parts)


def refuse_node_columns(columns: Columns) -> None:
    if columns.label or columns.id:
        raise InputError("label= and id= name columns of a node table; give nodes= as well")


def node_ids(column: pl.Series, place: str) -> pl.Series:
    ids = ids_of(column, place)
    require_unique(ids, place)
    return ids


def id_array(ids: pl.Series) -> Array:
    """int64 or NumPy text."""
    return ids.to_numpy() if ids.dtype == pl.Int64 else ids.to_numpy().astype(np.str_)


def node_parts(
    nodes: pl.DataFrame, found: Columns, place: str, notes: list[str], learn_from: int | None = None
) -> dict[str, Any]:
    """What the columns besides ids and features are about: arguments of `build_graph`."""
    parts: dict[str, Any] = {"labels": np.full(nodes.height, -1)}
    if found.label is not None:
        parts["labels"], parts["class_names"] = labels_of(nodes[found.label], learn_from)
        without_label(parts["labels"], [found.label], notes)
    if found.time is not None:
        parts["node_time"] = numbers_of(nodes[found.time], place)
    if found.split is not None:
        parts["published"] = {"given": split_of(nodes[found.split], place)}
    return parts


def edge_rows(
    pieces: Iterable[pl.DataFrame],
    ends: tuple[str, str],
    weight: str | None,
    ids: pl.Series,
    places: tuple[str, str],
    drop_unknown: bool,
    notes: list[str],
) -> Iterator[tuple[Array, Array, Array | None]]:
    """Rows of the two ends of every edge, and its weight, for each piece of an edge table."""
    before = dropped = 0
    for piece in pieces:
        named = [ids_of(piece[end], places[0], before) for end in ends]
        values = None if weight is None else numbers_of(piece[weight], places[0], before)
        rows = [rows_of(ids, end) for end in named]
        known = (rows[0] >= 0) & (rows[1] >= 0)
        if not known.all():
            if not drop_unknown:
                raise _unknown(rows, named, places, ids.dtype == pl.Int64, before)
            dropped += int((~known).sum())
            rows = [end[known] for end in rows]
            values = None if values is None else values[known]
        before += len(piece)
        yield rows[0], rows[1], values
    if dropped:
        notes.append(f"dropped {count(dropped, 'edge')} whose ends are not in {places[1]}")


def _unknown(
    rows: list[Array], ends: list[pl.Series], places: tuple[str, str], ids_are_whole: bool, before: int
) -> InputError:
    first = [int(np.argmax(end < 0)) if (end < 0).any() else len(end) for end in rows]
    which = int(np.argmin(first))
    row, column = first[which], ends[which]
    total = sum(int((end < 0).sum()) for end in rows)
    mixed = ", where all ids are whole numbers" if ids_are_whole and column.dtype != pl.Int64 else ""
    more = f" ({total} such ends)" if total > 1 else ""
    return InputError(
        f"{places[0]} row {before + row + 1}, column {column.name!r}: id {column[row]!r} is not in "
        f"{places[1]}{mixed}{more}; add the node, or leave such edges out with drop_unknown (--drop-unknown)"
    )


def _require(names: list[str], name: str | None, argument: str, place: str) -> None:
    if name is not None and name not in names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise InputError(f"{place} has no column {name!r} ({argument}=); it has {shown}")
