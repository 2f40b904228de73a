"""An edge table and a node table, all text, into a graph: where a column's meaning is decided."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..errors import Faults, InputError, argument
from ..graph.graph import Graph, build_graph, without_label
from ..text import count
from .cells import MISSING, stripped
from .columns import (
    Place,
    ids_of,
    ids_of_edges,
    labels_of,
    listed,
    loosely,
    require_unique,
    rows_of,
    split_of,
    times_of,
    weights_of,
)
from .features import features_of
from .kinds import check_target, class_notes, is_index

Array = npt.NDArray[Any]
EDGE_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"))
# A table of this many cells needs some 3 GB; more comes from a file that was made to swell.
MAX_CELLS = 200_000_000
ID_NAMES = ("id", "node_id", "node")
READING = 2  # the rules for what a column means; runs say by which ones their graph was read
LISTS = ("text", "categorical", "numeric", "ignore", "missing")


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
    text_model: str | None = None  # makes vectors of texts, see `texts.py`; else they become TF-IDF
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING  # cells that hold nothing
    as_classes: bool = False  # every value of the label is a class, whatever it looks like
    preview: bool = False  # only to be looked at: what takes long is not made
    reading: int = READING  # 1: as runs without a number were read, which knew numbers and categories alone

    def cells(self, column: pl.Series) -> pl.Series:
        """A column's text; null where nothing is known."""
        return column.cast(pl.String) if self.reading == 1 else stripped(column, ("", *self.missing))

    def ids(self, column: pl.Series) -> pl.Series:
        """Ids are what they are, but for white space around them."""
        return column if self.reading == 1 or column.dtype != pl.String else stripped(column, ("",))

    def edge_ends(self, names: list[str], place: Place, notes: list[str]) -> tuple[str, str]:
        """The columns with the two ends of an edge, among those of the edge table."""
        faults = Faults()
        with faults.noted():
            _require(names, self.weight, "weight", place)
        if self.source is not None or self.target is not None:
            if self.source is None or self.target is None:
                both = f"{argument('source')} and {argument('target')}"
                raise InputError(f"{both} go together; name both columns or neither")
            for role in ("source", "target"):
                with faults.noted():
                    _require(names, getattr(self, role), role, place)
            faults.raise_any()
            return self.source, self.target
        faults.raise_any()
        lower = {name.lower(): name for name in names}
        for one, other in EDGE_ENDS:
            if one in lower and other in lower:
                return lower[one], lower[other]
        first, second = self._not_index(names, 2)
        if not first.startswith("column_"):
            notes.append(f"edges read from the first two columns, {first!r} and {second!r}")
        return first, second

    def _not_index(self, names: list[str], least: int) -> list[str]:
        """The columns without a row number that a program added in front; at least so many are left."""
        skip = self.reading > 1 and is_index(names[0]) and len(names) > least
        return names[1 : least + 1] if skip else names[:least]

    def in_node_table(
        self, names: list[str], place: Place, notes: list[str]
    ) -> tuple["Columns", str, list[str]]:
        """The same with the label found, the column with the ids, and the columns of features."""
        faults = Faults()
        asked = [(getattr(self, role), role) for role in ("id", "label", "time", "split")]
        asked += [(name, role) for role in LISTS[:-1] for name in getattr(self, role)]
        for name, role in asked:
            with faults.noted():
                _require(names, name, role, place)
        faults.raise_any()
        id, label = self.id, self.label
        if id is None:
            lower = {name.lower(): name for name in names}
            id = next((lower[name] for name in ID_NAMES if name in lower), None)
        if id is None:
            (id,) = self._not_index(names, 1)
            notes.append(f"node ids read from the {'first' if id == names[0] else 'second'} column, {id!r}")
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


def name_columns(**given: Any) -> Columns:
    """Keyword arguments as :class:`Columns`; one name may stand for a list of one."""
    known = {field.name for field in fields(Columns)}
    stray = next((name for name in given if name not in known), None)
    if stray is not None:
        raise InputError(f"{stray}= is no argument here; columns are named with {', '.join(sorted(known))}")
    lists = {
        name: (value,) if isinstance(value, str) else tuple(value)
        for name, value in given.items()
        if name in LISTS and value is not None
    }
    plain = {name: value for name, value in given.items() if name not in LISTS and value is not None}
    made = Columns(**{**plain, **lists})
    if made.reading not in (1, READING):
        raise InputError(f"{argument('reading', made.reading)}: the rules of reading are 1 and {READING}")
    return made


def graph_from_tables(
    edges: pl.DataFrame,
    nodes: pl.DataFrame | None,
    columns: Columns,
    *,
    places: tuple[Place, Place],
    name: str,
    use_columns: bool = True,
    standardise: bool = True,
    drop_unknown: bool = False,
    learn_from: int | None = None,
    notes: Sequence[str] = (),
) -> Graph:
    """Tables of text (or Int64) columns -> a graph. ``places`` are what errors call the two tables.

    With ``learn_from``, the first so many nodes decide what features and classes there are. All faults of
    both tables are told at once.
    """
    edge_place, node_place = places
    faults, notes = Faults(), list(notes)
    ends: tuple[str, str] | None = None
    with faults.noted():
        ends = columns.edge_ends(edges.columns, edge_place, notes)
        unused = [c for c in edges.columns if c not in (*ends, columns.weight)]
        if unused:
            columns_ = "column" if len(unused) == 1 else "columns"
            notes.append(f"edge {columns_} not used: {listed([repr(c) for c in unused])}")
    parts: dict[str, Any] = {}
    ids: pl.Series | None = None
    with faults.noted():
        if nodes is None:
            refuse_node_columns(columns)
            if ends is not None:
                edges = edges.with_columns(columns.ids(edges[end]) for end in ends)
                ids = ids_of_edges([edges], ends, edge_place)
                parts["labels"] = np.full(len(ids), -1)
        else:
            found, id, features = columns.in_node_table(nodes.columns, node_place, notes)
            if learn_from is None and nodes[id].n_unique() < nodes.height:
                once = nodes.unique(maintain_order=True)
                if once.height < nodes.height:
                    notes.append(f"left out {count(nodes.height - once.height, 'row')} that repeat another")
                nodes = once
            with faults.noted():
                ids = ids_of(columns.ids(nodes[id]), node_place)
                require_unique(ids, node_place)
            with faults.noted():
                parts |= node_parts(nodes, found, node_place, notes, learn_from)
            with faults.noted():
                if use_columns and features:
                    parts["x"], parts["feature_names"], parts["columns"] = features_of(
                        nodes.select(features),
                        node_place,
                        notes,
                        columns,
                        standardise=standardise,
                        learn_from=learn_from,
                    )
    rows: tuple[Array, Array, Array | None] | None = None
    with faults.noted():
        if ends is not None and ids is not None:
            matched = Matching(columns, ends, ids.unique(maintain_order=True), places, drop_unknown, nodes)
            *header, (source, target, weight) = matched.edge_rows([edges], notes)
            for one, other, _ in header:
                source, target = np.append(source, one), np.append(target, other)
            rows = source, target, weight
    faults.raise_any()
    assert rows is not None and ids is not None  # else there was a fault
    source, target, weight = rows
    return build_graph(source, target, name=name, ids=id_array(ids), weight=weight, notes=notes, **parts)


def refuse_node_columns(columns: Columns) -> None:
    if columns.label or columns.id:
        both = f"{argument('label')} and {argument('id')}"
        raise InputError(f"{both} name columns of a node table; give {argument('nodes')} as well")


def node_ids(column: pl.Series, place: Place) -> pl.Series:
    ids = ids_of(column, place)
    require_unique(ids, place)
    return ids


def id_array(ids: pl.Series) -> Array:
    """int64 or NumPy text."""
    return ids.to_numpy() if ids.dtype == pl.Int64 else ids.to_numpy().astype(np.str_)


def node_parts(
    nodes: pl.DataFrame, found: Columns, place: Place, notes: list[str], learn_from: int | None = None
) -> dict[str, Any]:
    """What the columns besides ids and features are about: arguments of `build_graph`."""
    faults = Faults()
    parts: dict[str, Any] = {"labels": np.full(nodes.height, -1)}
    if found.label is not None:
        with faults.noted():
            words = found.cells(nodes[found.label])
            if found.reading > 1 and learn_from is None and not found.as_classes:
                check_target(words, place)
            parts["labels"], parts["class_names"] = labels_of(words, learn_from)
            if found.reading > 1 and learn_from is None:
                class_notes(words, nodes[found.label], notes)
            without_label(parts["labels"], [found.label], notes)
    if found.time is not None:
        with faults.noted():
            parts["node_time"] = times_of(nodes[found.time], place, notes)
    if found.split is not None:
        with faults.noted():
            parts["published"] = {"given": split_of(nodes[found.split], place)}
    faults.raise_any()
    return parts


@dataclass(frozen=True, eq=False)
class Matching:
    """The ends of edges among the ids of the nodes."""

    columns: Columns
    ends: tuple[str, str]
    ids: pl.Series
    places: tuple[Place, Place]
    drop_unknown: bool
    nodes: pl.DataFrame | None = None  # to look for the ids elsewhere, should they be in another column

    def edge_rows(
        self, pieces: Iterable[pl.DataFrame], notes: list[str]
    ) -> Iterator[tuple[Array, Array, Array | None]]:
        """Rows of the two ends of every edge, and its weight, for each piece of an edge table."""
        before = dropped = weightless = 0
        if self._header_is_edge():
            one, other = (rows_of(self.ids, pl.Series([end])) for end in self.ends)
            yield one, other, None
            notes.append(f"{self.places[0]}: the first line names two nodes, so it is an edge and no header")
        otherwise: dict[str, Any] = {}  # ids as edges write them -> as nodes do
        for piece in pieces:
            given = [self.columns.ids(piece[end]) for end in self.ends]
            whole = ~(given[0].is_null() | given[1].is_null())
            if self.drop_unknown and not whole.all():
                dropped += len(piece) - int(whole.sum())
                piece, given = piece.filter(whole), [end.filter(whole) for end in given]
            weight, faults, values = self.columns.weight, Faults(), None
            with faults.noted():
                values = None if weight is None else weights_of(piece[weight], self.places[0], before)
            with faults.noted():
                named = [ids_of(end, self.places[0], before) for end in given]
                rows, found = self._matched(named)
                otherwise |= found
                if not self.drop_unknown and any((row < 0).any() for row in rows):
                    raise self._unknown(rows, named, before)
            faults.raise_any()
            keep = (rows[0] >= 0) & (rows[1] >= 0)
            dropped += int((~keep).sum())
            if values is not None and (values == 0).any():
                weightless += int((keep & (values == 0)).sum())
                keep &= values != 0
            before += len(piece)
            if not keep.all():
                rows = [end[keep] for end in rows]
                values = None if values is None else values[keep]
            yield rows[0], rows[1], values
        if dropped:
            notes.append(f"dropped {count(dropped, 'edge')} whose ends are not in {self.places[1]}")
        if weightless:
            notes.append(f"dropped {count(weightless, 'edge')} of weight 0")
        if otherwise:
            (edge, node), *_ = otherwise.items()
            notes.append(f"ids of edges matched though written otherwise: {edge!r} is {node!r}")

    @cached_property
    def _loose(self) -> pl.Series | None:
        """Ids as they are compared where the exact ones differ; None if they would be the same then."""
        loose = loosely(self.ids)
        return loose if loose.n_unique() == len(loose) else None

    def _matched(self, ends: list[pl.Series]) -> tuple[list[Array], dict[str, Any]]:
        """Rows of the ids, -1 where there is none, and an example of one that is written otherwise."""
        rows, otherwise = [rows_of(self.ids, end) for end in ends], dict[str, Any]()
        if any((row < 0).any() for row in rows) and self._loose is not None:
            for place, (row, end) in enumerate(zip(rows, ends, strict=True)):
                again = rows_of(self._loose, loosely(end))
                new = np.flatnonzero((row < 0) & (again >= 0))[:1].tolist()
                otherwise |= {str(end[k]): self.ids[int(again[k])] for k in new}
                rows[place] = np.where(row < 0, again, row)
        return rows, otherwise

    def _header_is_edge(self) -> bool:
        """Whether an edge table has no header, though its first line is not all numbers."""
        if self.nodes is None or self.columns.reading == 1 or self.columns.source or self.columns.weight:
            return False
        return bool((rows_of(self.ids, pl.Series(self.ends)) >= 0).all())

    def _unknown(self, rows: list[Array], ends: list[pl.Series], before: int) -> InputError:
        first = [int(np.argmax(end < 0)) if (end < 0).any() else len(end) for end in rows]
        which = int(np.argmin(first))
        row, column = first[which], ends[which]
        total, all_ = sum(int((end < 0).sum()) for end in rows), sum(map(len, rows))
        mixed = self.ids.dtype == pl.Int64 != column.dtype
        more = f" ({total} such ends of {all_})" if total > 1 else ""
        where = f"{self.places[0].row(before + row)}, column {column.name!r}: id {column[row]!r}"
        if total > all_ / 2 and (other := self._elsewhere(ends)) is not None:
            remedy = f"column {other!r} holds such ids: {argument('id', other)}"
        elif total > all_ / 2:
            roles = ", ".join(argument(role) for role in ("id", "source", "target"))
            remedy = f"ids there look like {self.ids[0]!r}: name the right columns with {roles}"
        elif later := self.places[1].later:
            remedy = f"add the node to {later}, or delete the edge"
        else:
            remedy = f"add the node, or leave such edges out with {argument('drop_unknown', True)}"
        return InputError(
            f"{where} is not in {self.places[1]}{', where all ids are whole numbers' * mixed}{more}; {remedy}"
        )

    def _elsewhere(self, ends: list[pl.Series]) -> str | None:
        """Another column of the nodes in which most of the edges' ids are."""
        if self.nodes is None:
            return None
        asked = pl.concat([end.cast(pl.String) for end in ends]).unique()[:10_000]
        for column in self.nodes.iter_columns():
            if asked.is_in(self.columns.ids(column).cast(pl.String).implode()).mean() > 0.9:  # type: ignore[operator]
                return column.name
        return None


def _require(names: list[str], name: str | None, role: str, place: Place) -> None:
    if name is not None and name not in names:
        near = difflib.get_close_matches(name.lower(), [known.lower() for known in names], 1)
        guess = next((f"; did you mean {known!r}?" for known in names if known.lower() in near), "")
        shown = listed(names, 8)
        raise InputError(f"{place} has no column {name!r} ({argument(role)}); it has {shown}{guess}")
