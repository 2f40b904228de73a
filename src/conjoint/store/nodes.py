"""A node table into ids, labels, parts and a matrix of numbers, reading it once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.columns import SPLIT_NAMES
from ..data.from_tables import Columns, _node_ids
from ..data.ids import require_filled, require_unique, whole_if_all_are
from ..errors import InputError
from ..graph.mapped import Mapped, NpyWriter
from ..graph.sparse import SPARSE_BELOW
from ..text import count
from .tables import columns_of, pieces, scan

if TYPE_CHECKING:
    import polars as pl

Array = npt.NDArray[Any]
CELLS = 1 << 23  # numbers in memory at a time
MAX_CLASSES = 65_536


@dataclass(frozen=True, eq=False)
class Nodes:
    """What is known of the nodes; their features wait in a file of their own."""

    ids: "pl.Series"
    y: Array  # [nodes] int32, -1 = unlabelled
    part: Array | None  # [nodes] int8: 0, 1, 2 = train, val, test; -1 = none
    class_names: list[str]
    feature_names: list[str]
    moments: "Moments"


class Moments:
    """Extremes, mean and variance of each column, gathered piece by piece (Chan's way of joining two)."""

    def __init__(self, columns: int) -> None:
        self.rows = self.nonzero = 0
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        self.mean, self.squares = np.zeros(columns), np.zeros(columns)

    def add(self, values: Array) -> None:
        if not len(values):
            return
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

    @property
    def std(self) -> Array:
        return np.sqrt(self.squares / max(1, self.rows))


def read_nodes(path: str | Path, columns: Columns, raw: Path, notes: list[str]) -> Nodes:
    """Features go to the file `raw` as they are; the rest is returned."""
    import polars as pl

    table = scan(path)
    names = columns_of(table, path)
    id_name = _node_ids(pl.DataFrame({name: ["0"] for name in names}), columns, str(path), notes).name
    label = columns.label or ("label" if "label" in names else None)
    for name in (label, columns.split, *columns.ignore):
        if name is not None and name not in names:
            raise InputError(f"{path} has no column {name!r}; it has {', '.join(names[:8])}")
    if columns.text or columns.categorical or columns.time or columns.weight:
        raise InputError("ingest reads numbers: encode text, categories and times first, or --ignore them")
    features = [n for n in names if n not in {id_name, label, columns.split, *columns.ignore}]
    if not features:
        raise InputError(f"{path} has no columns of features; give the nodes some numbers")
    ids, labels, parts, codes = [], [], [], dict[str, int]()
    moments = Moments(len(features))
    wanted = [name for name in (id_name, label, columns.split) if name is not None] + features
    rows = max(1024, CELLS // len(wanted))
    with NpyWriter(raw, np.float32, len(features)) as x:
        for piece in pieces(table, wanted, rows, path):
            ids.append(_plain_ids(piece[id_name]))
            if label is not None:
                labels.append(_codes(piece[label], codes, label, path))
            if columns.split is not None:
                parts.append(_parts(piece[columns.split], path, x.rows))
            values = _numbers(piece, features, path, x.rows)
            moments.add(values)
            x.append(values)
    if moments.rows == 0:
        raise InputError(f"{path} has a header but no rows")
    all_ids = pl.concat([part if _all_whole(ids) else part.cast(pl.String) for part in ids])
    require_filled(all_ids, str(path))
    require_unique(all_ids, str(path))
    y, class_names = _sorted_classes(labels, codes, moments.rows)
    missing = int((y < 0).sum())
    if missing:
        notes.append(f"{count(missing, 'node')} without a label")
    part = np.concatenate(parts) if parts else None
    return Nodes(whole_if_all_are(all_ids), y, part, class_names, features, moments)


def write_features(raw: Path, target: Path, nodes: Nodes, standardise: bool, notes: list[str]) -> NpyWriter:
    """x.npy from the raw numbers: centred and scaled as the data stage does it, constant columns left out."""
    moments = nodes.moments
    keep = np.ones(len(nodes.feature_names), dtype=bool)
    shift, scale = np.zeros(len(keep)), np.ones(len(keep))
    if standardise:
        keep = moments.low != moments.high
        if not keep.all():
            notes.append(f"dropped {count(int((~keep).sum()), 'constant column')}")
        if moments.nonzero < SPARSE_BELOW * moments.rows * len(keep):
            scale = np.maximum(np.abs(moments.low), np.abs(moments.high))
            notes.append(f"scaled {count(int(keep.sum()), 'mostly empty numeric column')} to at most 1")
        else:
            shift, scale = moments.mean, moments.std
            notes.append(f"standardised {count(int(keep.sum()), 'numeric column')}")
    if not keep.any():
        raise InputError("every column of features is constant, so there is nothing to learn from")
    source = Mapped(raw)
    step = max(1, CELLS // len(keep))
    with NpyWriter(target, np.float32, int(keep.sum())) as x:
        for start in range(0, moments.rows, step):
            values = source.values[start : start + step]
            x.append(
                ((values - shift) / np.where(scale == 0, 1.0, scale))[:, keep] if standardise else values
            )
            source.release()
    nodes.feature_names[:] = [n for n, kept in zip(nodes.feature_names, keep, strict=True) if kept]
    return x


def _plain_ids(column: "pl.Series") -> "pl.Series":
    import polars as pl

    return column.cast(pl.Int64) if column.dtype.is_integer() else whole_if_all_are(column.cast(pl.String))


def _all_whole(ids: Sequence["pl.Series"]) -> bool:
    import polars as pl

    return all(part.dtype == pl.Int64 for part in ids)


def _codes(column: "pl.Series", codes: dict[str, int], name: str, path: str | Path) -> Array:
    """Numbers of the classes in order of appearance; -1 where the cell is empty."""
    import polars as pl

    text = column.cast(pl.String)
    for word in text.drop_nulls().unique(maintain_order=True):
        codes.setdefault(word, len(codes))
    if len(codes) > MAX_CLASSES:
        raise InputError(f"{path}: column {name!r} has more than {MAX_CLASSES} classes; is it the label?")
    if text.null_count() == len(text):
        return np.full(len(text), -1, dtype=np.int32)
    return text.replace_strict(codes, default=-1, return_dtype=pl.Int32).fill_null(-1).to_numpy()


def _sorted_classes(labels: list[Array], codes: dict[str, int], rows: int) -> tuple[Array, list[str]]:
    import polars as pl

    if not codes:
        return np.full(rows, -1, dtype=np.int32), []
    names = whole_if_all_are(pl.Series(list(codes))).sort().cast(pl.String).to_list()
    place = np.empty(len(codes) + 1, dtype=np.int32)
    place[[codes[name] for name in names]] = np.arange(len(names))
    place[-1] = -1
    return place[np.concatenate(labels)], names


def _parts(column: "pl.Series", path: str | Path, before: int) -> Array:
    import polars as pl

    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    known = words.is_in(list(SPLIT_NAMES)) | words.is_null()
    if not known.all():
        row = int((~known).arg_max() or 0)
        where = f"{path} row {before + row + 1}, column {column.name!r}"
        raise InputError(f"{where}: {words[row]!r} is none of train, val, test")
    if words.null_count() == len(words):
        return np.full(len(words), -1, dtype=np.int8)
    return words.replace_strict(SPLIT_NAMES, default=-1, return_dtype=pl.Int8).fill_null(-1).to_numpy()


def _numbers(piece: "pl.DataFrame", names: list[str], path: str | Path, before: int) -> Array:
    """[rows, columns] float32, every one finite; the first cell that is none is named."""
    import polars as pl

    cells = [
        (pl.col(n).str.strip_chars() if kind == pl.String else pl.col(n)).cast(pl.Float32, strict=False)
        for n, kind in piece.select(names).schema.items()
    ]
    values = piece.select(cells).to_numpy().astype(np.float32, copy=False)
    bad = ~np.isfinite(values)
    if bad.any():
        row, place = map(int, np.argwhere(bad)[0])
        found = piece[names[place]][row]
        said = "no value" if found is None else repr(found)
        raise InputError(
            f"{path} row {before + row + 1}, column {names[place]!r}: {said} is no finite number; fill it, "
            "or --ignore the column"
        )
    return values


def id_pieces(ids: "pl.Series") -> Iterator[Array]:
    """The ids as NumPy arrays of one type, a piece at a time."""
    import polars as pl

    width = 1 if ids.dtype == pl.Int64 else max(1, int(ids.str.len_chars().to_numpy().max()))
    for start in range(0, len(ids), 1 << 20):
        part = ids[start : start + (1 << 20)].to_numpy()
        yield part if ids.dtype == pl.Int64 else part.astype(f"<U{width}")
