"""An edge table and a node table, all text, into a graph: where a column's meaning is decided."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from conjoint.data.columns import FeatureColumns, features_of, labels_of, numbers_of, split_of
from conjoint.data.ids import (
    ids_of_edges,
    is_whole,
    require_filled,
    require_unique,
    rows_of,
    to_array,
    whole_if_all_are,
)
from conjoint.errors import InputError
from conjoint.graph.graph import Graph, build_graph, without_label
from conjoint.text import count

if TYPE_CHECKING:
    import polars as pl

EDGE_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"))
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
    edges: "pl.DataFrame",
    nodes: "pl.DataFrame | None",
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
    source_name, target_name = _edge_ends(edges, columns, edge_place, notes)
    source, target = whole_if_all_are(edges[source_name]), whole_if_all_are(edges[target_name])
    for end in (source, target):
        require_filled(end, edge_place)
    weight = None
    if columns.weight is not None:
        weight = numbers_of(_column(edges, columns.weight, "weight", edge_place), edge_place)
    unused = [c for c in edges.columns if c not in (source_name, target_name, columns.weight)]
    if unused:
        notes.append(f"edge {'column' if len(unused) == 1 else 'columns'} not used: {', '.join(unused[:5])}")
    if nodes is None:
        if columns.label or columns.id:
            raise InputError("label= and id= name columns of a node table; give nodes= as well")
        ids = ids_of_edges(source, target)
    else:
        ids = _node_ids(nodes, columns, node_place, notes)
    ends = [rows_of(ids, end) for end in (source, target)]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    if not known.all():
        if not drop_unknown:
            _refuse_unknown(ends, (source, target), places, is_whole(ids))
        notes.append(f"dropped {count(int((~known).sum()), 'edge')} whose ends are not in {node_place}")
        ends = [end[known] for end in ends]
        weight = None if weight is None else weight[known]
    parts: dict[str, Any] = {"labels": np.full(len(ids), -1, dtype=np.int64)}
    if nodes is not None:
        options = FeatureColumns(columns.text, columns.categorical, standardise) if use_columns else None
        parts = _read_node_columns(nodes, ids.name, columns, node_place, options, learn_from, notes)
    return build_graph(*ends, name=name, ids=to_array(ids), weight=weight, notes=notes, **parts)


def _read_node_columns(
    nodes: "pl.DataFrame",
    id_name: str,
    columns: Columns,
    place: str,
    options: FeatureColumns | None,
    learn_from: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """What the columns besides the id are about: arguments of `build_graph`."""
    parts: dict[str, Any] = {"labels": np.full(nodes.height, -1, dtype=np.int64)}
    label = columns.label
    if label is None and "label" in nodes.columns:
        label = "label"
        notes.append("labels taken from column 'label'")
    if label is not None:
        column = _column(nodes, label, "label", place)
        parts["labels"], parts["class_names"] = labels_of(column, learn_from)
        without_label(parts["labels"], [label], notes)
    if columns.time is not None:
        parts["node_time"] = numbers_of(_column(nodes, columns.time, "time", place), place)
    if columns.split is not None:
        parts["published"] = {"given": split_of(_column(nodes, columns.split, "split", place), place)}
    for name in (*columns.text, *columns.categorical, *columns.ignore):
        _column(nodes, name, "text, categorical or ignore", place)
    taken = {id_name, label, columns.time, columns.split, *columns.ignore}
    rest = nodes.select([c for c in nodes.columns if c not in taken])
    if options is not None and rest.width:
        parts["x"], parts["feature_names"] = features_of(rest, options, place, notes, learn_from)
    return parts


def _edge_ends(edges: "pl.DataFrame", columns: Columns, place: str, notes: list[str]) -> tuple[str, str]:
    if columns.source is not None or columns.target is not None:
        if columns.source is None or columns.target is None:
            raise InputError("source= and target= go together; name both columns or neither")
        _column(edges, columns.source, "source", place)
        _column(edges, columns.target, "target", place)
        return columns.source, columns.target
    lower = {c.lower(): c for c in edges.columns}
    for one, other in EDGE_ENDS:
        if one in lower and other in lower:
            return lower[one], lower[other]
    first, second = edges.columns[:2]
    if not first.startswith("column_"):
        notes.append(f"edges read from the first two columns, {first!r} and {second!r}")
    return first, second


def _node_ids(nodes: "pl.DataFrame", columns: Columns, place: str, notes: list[str]) -> "pl.Series":
    if columns.id is not None:
        ids = _column(nodes, columns.id, "id", place)
    else:
        lower = {c.lower(): c for c in nodes.columns}
        found = next((lower[name] for name in ID_NAMES if name in lower), None)
        if found is None:
            notes.append(f"node ids read from the first column, {nodes.columns[0]!r}")
        ids = nodes[found or nodes.columns[0]]
    require_filled(ids, place)
    require_unique(ids, place)
    return whole_if_all_are(ids)


def _refuse_unknown(
    ends: Sequence[npt.NDArray[Any]],
    columns: Sequence["pl.Series"],
    places: tuple[str, str],
    ids_are_whole: bool,
) -> None:
    bad = [int(np.argmax(end < 0)) if (end < 0).any() else len(end) for end in ends]
    which = int(np.argmin(bad))
    row, column = bad[which], columns[which]
    total = sum(int((end < 0).sum()) for end in ends)
    mixed = ", where all ids are whole numbers" if ids_are_whole and not is_whole(column) else ""
    more = f" ({total} such ends in all)" if total > 1 else ""
    raise InputError(
        f"{places[0]} row {row + 1}, column {column.name!r}: id {column[row]!r} is not in {places[1]}{mixed}"
        f"{more}; add the node, or pass drop_unknown to leave such edges out"
    )


def _column(frame: "pl.DataFrame", name: str, argument: str, place: str) -> "pl.Series":
    if name not in frame.columns:
        shown = ", ".join(frame.columns[:8]) + (", ..." if frame.width > 8 else "")
        raise InputError(f"{place} has no column {name!r} ({argument}=); it has {shown}")
    return frame[name]
