"""Columns of the user's tables into ids, labels, weights, times and splits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ..errors import Faults, InputError, argument
from .cells import dates, decimal_years, numbers, where

# As Python would print it: "7" but not "07", "+7" or "7.0". Those stay text, so that no id changes.
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
SPLIT_NAMES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


@dataclass(frozen=True)
class Place:
    """What errors call a table, and its rows: those of a joined one belong to two files."""

    file: str
    known: int | None = None  # rows of `file`; further ones are those of `later`
    later: str = ""

    def __str__(self) -> str:
        return f"{self.file} with {self.later}" if self.later else self.file

    def row(self, row: int) -> str:
        if self.known is not None and row >= self.known:
            return f"{self.later} row {row - self.known + 1}"
        return f"{self.file} row {row + 1}"

    def rows(self, which: pl.Series, before: int = 0) -> str:
        """The first rows where `which` is true, and how many more there are."""
        found = which.fill_null(False).arg_true().to_list()
        more = [self.row(before + row).rpartition(" ")[2] for row in found[1:3]]
        rest = f" and {len(found) - 3} more" if len(found) > 3 else ""
        return self.row(before + found[0]) + "".join(f", {row}" for row in more) + rest


def listed(items: Sequence[object], most: int = 5) -> str:
    """a, b, c and 4 more"""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def taken_for_missing(given: pl.Series, column: pl.Series) -> str:
    """The words that are no values in `column`, with how often each stands in what was given."""
    words = given.filter(column.is_null() & given.is_not_null()).cast(pl.String).str.strip_chars()
    found = words.filter(words != "").value_counts(sort=True).rows()
    return listed([f"{word!r} ({times})" for word, times in found], 3)


def whole_if_all_are(column: pl.Series) -> pl.Series:
    """A text column as Int64 if every value is a whole number in its plain form, else as it is."""
    if column.dtype != pl.String or not column.str.contains(WHOLE_NUMBER).all():
        return column
    return column.cast(pl.Int64)


def ids_of(column: pl.Series, place: Place, before: int = 0) -> pl.Series:
    """Ids as Int64 where every one is written as a whole number, else as text. None may be missing.

    `before` rows of the table came in earlier pieces.
    """
    if column.null_count():
        where = place.rows(column.is_null(), before)
        raise InputError(f"{where}, column {column.name!r}: no id; fill it or delete the row")
    return column.cast(pl.Int64) if column.dtype.is_integer() else whole_if_all_are(column.cast(pl.String))


def joined_ids(parts: Sequence[pl.Series]) -> pl.Series:
    """Pieces of ids as one column: of numbers if all pieces are."""
    whole = all(part.dtype == pl.Int64 for part in parts)
    return pl.concat([part if whole else part.cast(pl.String) for part in parts])


def require_unique(column: pl.Series, place: Place) -> None:
    if column.n_unique() == len(column):
        return
    again = (~column.is_first_distinct()).arg_true().to_list()
    first, before = column[again[0]], int((column == column[again[0]]).arg_max() or 0)
    others = [repr(column[row]) for row in again[1:] if column[row] != first]
    also = f" (so do {listed(others, 3)})" if others else ""
    known = place.known if place.known is not None else len(column)
    (file, row), other = place.row(before).rsplit(" ", 1), place.row(again[0])
    if (before < known) == (again[0] < known):
        other = "row " + other.rpartition(" ")[2]
    raise InputError(
        f"{file.removesuffix(' row')}: node id {first!r} stands in row {row} and again in {other}{also}; "
        "keep one row per node"
    )


def ids_of_edges(pieces: Iterable[pl.DataFrame], ends: tuple[str, str], place: Place) -> pl.Series:
    """The distinct ids of an edge list, sorted (numbers by value, text by letters)."""
    known: list[pl.Series] = []
    before = 0
    for piece in pieces:
        found = [ids_of(piece[end], place, before).unique().alias("id") for end in ends]
        known = [joined_ids([*known, *found]).unique()]
        before += len(piece)
    return joined_ids(known).sort()


def rows_of(ids: pl.Series, column: pl.Series) -> npt.NDArray[np.int64]:
    """Row of each of ``column``'s ids within ``ids``; -1 where it is not there."""
    kind = pl.Int64 if ids.dtype == column.dtype == pl.Int64 else pl.String
    if kind == pl.Int64:
        known, asked = ids.to_numpy(), column.to_numpy()
        low, high = int(known.min()), int(known.max())
        if high - low < 8 * len(ids) + 1024:  # close together: a look-up table is several times faster
            table = np.full(high - low + 1, -1, dtype=np.int64)
            table[known - low] = np.arange(len(ids))
            if low <= int(asked.min()) and int(asked.max()) <= high:
                return table[asked - low]
            inside = (asked >= low) & (asked <= high)
            return np.where(inside, table[np.where(inside, asked, low) - low], -1)
    left = column.cast(kind).alias("id").to_frame()
    right = pl.DataFrame({"id": ids.cast(kind), "row": np.arange(len(ids))})
    found = left.join(right, on="id", how="left", maintain_order="left")["row"]
    return found.fill_null(-1).to_numpy()


def loosely(ids: pl.Series) -> pl.Series:
    """Ids as they are compared where the exact ones differ: 000019, 19.0 and 19 are one."""
    return ids.cast(pl.String).str.replace(r"\.0+$", "").str.replace(r"^(-?)0+(\d)", "${1}${2}")


def codes_of(column: pl.Series, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The place of each value among `names`, -1 where it is none of them."""
    place = column.cast(pl.Enum(names), strict=False).to_physical()
    return place.cast(pl.Int64).fill_null(-1).to_numpy(writable=True)


def labels_of(column: pl.Series, learn_from: int | None = None) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Class numbers (-1 where the cell is empty) and class names, sorted by value or by letters.

    With `learn_from`, the first so many rows decide which classes there are; others are -1 too.
    """
    words = column[:learn_from].drop_nulls().unique().cast(pl.String)
    names = whole_if_all_are(words).sort().cast(pl.String).to_list()
    return codes_of(column, names), names


def numbers_of(column: pl.Series, place: Place, before: int = 0) -> npt.NDArray[np.float64]:
    """A column of finite numbers; the cells that are none are named."""
    values = numbers(column.cast(pl.String)).values
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        found = "no value" if column[row] is None else repr(column[row])
        raise InputError(
            f"{place.rows(values.is_null(), before)}, column {column.name!r}: {found} is no finite number; "
            "fill it in"
        )
    return values.to_numpy()


def weights_of(column: pl.Series, place: Place, before: int = 0) -> npt.NDArray[np.float64]:
    """Weights of edges, none below 0: a share of attention is not negative."""
    faults = Faults()
    with faults.noted():
        values = numbers_of(column, place, before)
    below = numbers(column.cast(pl.String)).values < 0
    with faults.noted():
        if below.any():
            least = column.filter(below)[0]
            raise InputError(
                f"{place.rows(below, before)}, column {column.name!r}: {least} is a negative weight; "
                f"shift or take the size of the weights, or leave out {argument('weight', column.name)}"
            )
    faults.raise_any()
    return values


def times_of(column: pl.Series, place: Place, notes: list[str]) -> npt.NDArray[np.float64]:
    """Times as numbers; dates as decimal years."""
    found = dates(column.cast(pl.String).str.strip_chars())
    if found is None or found.values.null_count():
        return numbers_of(column, place)
    notes.append(f"times of column {column.name!r} are decimal years: the first of July 2012 is 2012.5")
    return decimal_years(found.values).to_numpy()


def split_of(column: pl.Series, place: Place) -> tuple[npt.NDArray[np.int64], ...]:
    """Node rows of train, validation and test, from a column that says so in words; empty = in none."""
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    words = where(words != "", words)
    codes = codes_of(words, list(SPLIT_NAMES))
    stray = pl.Series(codes < 0) & words.is_not_null()
    if stray.any():
        found = words[int(stray.arg_max() or 0)]
        raise InputError(
            f"{place.rows(stray)}, column {column.name!r}: {found!r} is none of train, val, test; correct "
            f"it, or leave out {argument('split', column.name)}"
        )
    part = np.array([*SPLIT_NAMES.values(), -1])[codes]
    return tuple(np.flatnonzero(part == p) for p in range(3))
