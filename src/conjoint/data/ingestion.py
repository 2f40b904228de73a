"""From tables of any size to a graph folder that training maps into memory.

Edges are read and sorted a piece at a time, and so are node tables whose features are all numbers. In memory
are the ids, labels, times and parts of the nodes; a node table with text or categories, which is read as
`read_graph` reads it; and, for features made from the edges, the edges.
"""

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from ..errors import ConjointError, InputError, StorageError
from ..graph.folder import Described, Manifest, write_array, write_folder
from ..graph.graph import Graph
from ..graph.mapped import Mapped
from ..graph.sparse import SPARSE_BELOW, pack_features
from ..storage import LOCK, locked, usual_mode
from ..text import count
from .columns import Place, ids_of_edges, listed
from .edge_sort import PIECE, write_csr
from .features import Features, features_of
from .from_tables import (
    Columns,
    Matching,
    id_array,
    node_ids,
    node_parts,
    refuse_node_columns,
)
from .own import WHOLE_GRAPH, File, Reading, kind_of, read_graph
from .read_table import MAX_BYTES, Pieces, open_table, read_table

Array = npt.NDArray[Any]
Tell = Callable[[str], None]
CELLS = 1 << 23  # numbers of the node table in memory at a time
MAX_CLASSES = 65_536


class NotNumbers(InputError):
    """A feature is no finite number: only the reader of whole tables can tell categories from mistakes."""


def ingest(
    edges: str | Path,
    nodes: str | Path | None,
    out: str | Path,
    *,
    tell: Tell = lambda text: None,
    **options: Any,
) -> Manifest:
    """Make the graph folder `out`. It appears complete, or not at all.

    Args:
        edges, nodes: as in `conjoint.data.read_graph`; CSV, TSV and Parquet may be of any size.
        options: those of `conjoint.data.read_graph`: columns, features, standardise, drop_unknown, name, ...
        tell: called with a line about each stage.
    """
    out = Path(out)
    if out.exists():
        raise InputError(f"{out}: already there and never overwritten; choose another folder")
    known = set(signature(read_graph).parameters) - {"edges", "nodes", "sparse"}
    stray = next((name for name in options if name not in known), None)
    if stray is not None:
        raise InputError(f"{stray}= is no argument here; choose among {', '.join(sorted(known))}")
    with _nursery(out) as folder, tempfile.TemporaryDirectory(dir=folder) as scratch:
        written: dict[str, Described] = {}
        if kind_of(edges) in WHOLE_GRAPH:
            tell(f"reading {edges}")
            graph = read_graph(edges, nodes, **options)
        else:
            graph = _read_in_pieces(edges, nodes, folder, Path(scratch), written, tell, **options)
        if graph.num_classes > MAX_CLASSES:
            raise InputError(f"{nodes}: more than {MAX_CLASSES} classes; is it the label?")
        manifest = write_folder(folder, graph, written)
    tell(f"{manifest.entries // 2} edges; kept in {out}")
    return manifest


def _read_in_pieces(
    edges: File,
    nodes: File | None,
    folder: Path,
    scratch: Path,
    written: dict[str, Described],
    tell: Tell,
    seed: int = 0,
    **given: Any,
) -> Graph:
    """The graph, of which large arrays are `written` to the folder and mapped."""
    reading = Reading.of(given)
    columns, form, header = reading.columns, reading.form, reading.header_of_nodes
    places, notes = (Place(str(edges)), Place(str(nodes))), list[str]()
    edge_table = open_table(edges, scratch, **form, header=reading.header)
    ends = columns.edge_ends(edge_table.names, places[0], notes)
    parts: dict[str, Any] = {}
    x: Any = None
    about: pl.DataFrame | None = None
    if nodes is None:
        refuse_node_columns(columns)
        ids = ids_of_edges(edge_table.read(ends, PIECE), ends, places[0])
        labels = np.full(len(ids), -1)
    else:
        tell(f"reading {nodes}")
        node_table = open_table(nodes, scratch, **form, header=header)
        found, id, numbers = columns.in_node_table(node_table.names, places[1], notes)
        about = small_columns(node_table, id, found)
        ids = node_ids(columns.ids(about[id]), places[1])
        parts = node_parts(about, found, places[1], notes)
        labels = parts.pop("labels")
        if reading.features is None and numbers:
            try:
                written["x"], kept = write_numbers(node_table, numbers, folder, scratch, notes, reading)
            except NotNumbers:
                (folder / "x.npy").unlink(missing_ok=True)
                if Path(nodes).stat().st_size > reading.max_bytes:
                    raise
                whole = read_table(nodes, **form, header=header, max_bytes=reading.max_bytes)
                options = {"standardise": reading.standardise}
                made, kept, _ = features_of(whole.select(numbers), places[1], notes, columns, **options)
                x = None if made is None else pack_features(made, "auto")
            parts["feature_names"] = kept
    tell(f"{len(ids)} nodes with {len(parts.get('feature_names', ()))} features; reading {edges}")
    read = [*ends, *([] if columns.weight is None else [columns.weight])]
    matched = Matching(columns, ends, ids, places, reading.drop_unknown, about)
    rows = matched.edge_rows(edge_table.read(read, PIECE), notes)
    csr = write_csr(rows, len(ids), folder, columns.weight is not None)
    written |= csr.arrays
    maps = {array: Mapped(folder / f"{array}.npy") for array in written}
    if csr.rowptr[-1] == 0:
        raise InputError(f"{edges} has no edges between different nodes; attention needs some")
    if csr.loops:
        notes.append(f"dropped {count(csr.loops, 'self-loop')} (layers add their own)")
    if csr.repeated:
        notes.append(f"{count(csr.repeated, 'line')} repeat an edge or give its other direction")
    graph = Graph(
        given_x=maps["x"].values if "x" in maps else x,
        y=torch.from_numpy(labels),
        edges=(csr.rowptr, maps["col"].values),
        edge_weight=torch.from_numpy(np.array(maps["weight"].values)) if "weight" in maps else None,
        ids=id_array(ids),
        name=reading.title(edges),
        notes=notes,
        maps=tuple(maps.values()),
        **parts,
    )
    return graph.with_features(reading.features, seed)


def small_columns(table: Pieces, id: str, found: Columns) -> pl.DataFrame:
    """All of a node table but its features."""
    roles = [role for role in (id, found.label, found.time, found.split) if role is not None]
    # Few different values: as categories they take a quarter of the room.
    few = [pl.col(role).cast(pl.String).cast(pl.Categorical) for role in (found.label, found.split) if role]
    pieces = [piece.with_columns(few) for piece in table.read(roles, PIECE)]
    if not any(piece.height for piece in pieces):
        raise InputError(f"{table.place} has a header but no rows")
    return pl.concat(pieces)


class Moments:
    """Extremes, mean and variance of each column, gathered piece by piece (Chan's way of joining two)."""

    def __init__(self, columns: int) -> None:
        self.rows = self.nonzero = 0
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        self.mean, self.squares = np.zeros(columns), np.zeros(columns)

    def add(self, values: Array) -> None:
        here, total = len(values), self.rows + len(values)
        mean = values.mean(axis=0, dtype=np.float64)
        apart = mean - self.mean
        spread = ((values - mean) ** 2).sum(axis=0, dtype=np.float64)
        self.squares += spread + apart**2 * (self.rows * here / total)
        self.mean += apart * (here / total)
        self.low = np.minimum(self.low, values.min(axis=0))
        self.high = np.maximum(self.high, values.max(axis=0))
        self.nonzero += int(np.count_nonzero(values))
        self.rows = total


def write_numbers(
    table: Pieces, names: list[str], folder: Path, scratch: Path, notes: list[str], reading: Reading
) -> tuple[Described, list[str]]:
    """x.npy from columns of numbers, and their names: scaled as `features_of` does, but from float32."""
    names = _plain_numbers(table, names, notes, reading)
    moments = Moments(len(names))

    def read() -> Iterator[Array]:
        for piece in table.read(names, max(1024, CELLS // len(names))):
            if piece.height:
                values = _numbers(piece.select(names), table.place, moments.rows)
                moments.add(values)
                yield values

    if not reading.standardise:
        return write_array(folder, "x", np.float32, read(), len(names)), names
    write_array(scratch, "raw", np.float32, read(), len(names))
    keep = moments.low != moments.high
    if not keep.all():
        constant = [repr(name) for name, varies in zip(names, keep, strict=True) if not varies]
        notes.append(f"left out as constant: {listed(constant)}")
    if moments.nonzero < SPARSE_BELOW * moments.rows * len(keep):
        shift, scale = np.zeros(len(keep)), np.maximum(np.abs(moments.low), np.abs(moments.high))
        notes.append(f"scaled {count(int(keep.sum()), 'mostly empty numeric column')} to at most 1")
    else:
        shift, scale = moments.mean, np.sqrt(moments.squares / moments.rows)
        notes.append(f"standardised {count(int(keep.sum()), 'numeric column')}")
    if not keep.any():
        raise InputError(
            f"{table.place}: every column of features is constant; there is nothing to learn from"
        )
    raw = Mapped(scratch / "raw.npy")

    def scaled() -> Iterator[Array]:
        step = max(1, CELLS // len(keep))
        for start in range(0, moments.rows, step):
            yield ((raw.values[start : start + step] - shift) / np.where(scale == 0, 1.0, scale))[:, keep]
            raw.release()

    kept = [name for name, varies in zip(names, keep, strict=True) if varies]
    return write_array(folder, "x", np.float32, scaled(), len(kept)), kept


def _plain_numbers(table: Pieces, names: list[str], notes: list[str], reading: Reading) -> list[str]:
    """The columns that are numbers in their plain form, by the first rows; identifiers and splits go."""
    sample = next(table.read(names, max(1024, CELLS // len(names))))
    found = Features(Place(table.place), reading.columns, reading.standardise, None)
    for column in sample.iter_columns():
        kind = found.kind(reading.columns.cells(column))
        plain = kind.name == "number" and not kind.why and kind.read is not None
        if not plain and kind.name != "left out":
            raise _not_numbers(table.place, f"column {column.name!r}")
        if not plain:
            found.add(column)
    found.matrix(notes)
    return [name for name in names if name not in found.about]


def _numbers(piece: pl.DataFrame, place: str, before: int) -> Array:
    """[rows, columns] float32, every one finite; the first cell that is none is named."""
    for name, kind in piece.schema.items():
        if not (kind.is_numeric() or kind in (pl.String, pl.Null)):
            raise _not_numbers(place, f"column {name!r} ({kind})")
    plain = piece.with_columns(pl.col(pl.String).str.strip_chars())
    values = plain.select(pl.all().cast(pl.Float32, strict=False)).to_numpy().astype(np.float32, copy=False)
    bad = ~np.isfinite(values)
    if bad.any():
        row, at = map(int, np.argwhere(bad)[0])
        name, cell = piece.columns[at], piece.item(row, at)
        found = "no value" if cell is None else repr(cell)
        raise _not_numbers(place, f"row {before + row + 1}, column {name!r}: {found}")
    return values


def _not_numbers(place: str, what: str) -> NotNumbers:
    return NotNumbers(
        f"{place} {what} is no finite number; text and categories are read whole, from tables of at most "
        f"{MAX_BYTES:,} bytes: encode or ignore the column"
    )


@contextlib.contextmanager
def _nursery(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` that takes its name when the block ends well, and else vanishes.

    What a killed process left is recognised by its lock, which the system has dropped, and removed.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in out.parent.glob(f".{glob.escape(out.name)}.*.ingesting"):
            with contextlib.suppress(ConjointError), locked(left):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".ingesting", dir=out.parent))
        try:
            with locked(folder):
                yield folder
                (folder / LOCK).unlink()
                for path in folder.iterdir():
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
                folder.chmod(usual_mode(0o777))
                os.rename(folder, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise StorageError(f"{out}: cannot write ({said}); nothing was kept: make room or move") from error
