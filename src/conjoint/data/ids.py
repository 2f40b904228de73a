"""The user's node ids: whole numbers where every one is written as a whole number, text otherwise."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from conjoint.errors import InputError

if TYPE_CHECKING:
    import polars as pl

# As Python would print it: "7" but not "07", "+7" or "7.0". Those stay text, so that no id changes.
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"


def whole_if_all_are(column: "pl.Series") -> "pl.Series":
    """A text column as Int64 if every value is a whole number in its plain form, else as it is."""
    import polars as pl

    if column.dtype != pl.String or not column.str.contains(WHOLE_NUMBER).all():
        return column
    return column.cast(pl.Int64)


def is_whole(column: "pl.Series") -> bool:
    import polars as pl

    return column.dtype == pl.Int64


def to_array(column: "pl.Series") -> npt.NDArray[Any]:
    """int64 or NumPy text."""
    return column.to_numpy() if is_whole(column) else column.to_numpy().astype(np.str_)


def require_filled(column: "pl.Series", place: str) -> None:
    """No id may be missing; the first row without one is named."""
    if column.null_count():
        row = int(column.is_null().arg_max() or 0) + 1
        raise InputError(f"{place} row {row}, column {column.name!r}: no id; fill it or delete the row")


def require_unique(column: "pl.Series", place: str) -> None:
    if column.n_unique() == len(column):
        return
    again = int((~column.is_first_distinct()).arg_max() or 0)
    before = int((column == column[again]).arg_max() or 0)
    raise InputError(
        f"{place}: node id {column[again]!r} stands in row {before + 1} and again in row {again + 1}; "
        "keep one row per node"
    )


def ids_of_edges(source: "pl.Series", target: "pl.Series") -> "pl.Series":
    """The distinct ids of an edge list, sorted (numbers by value, text by letters)."""
    import polars as pl

    if not (is_whole(source) and is_whole(target)):
        source, target = source.cast(pl.String), target.cast(pl.String)
    return pl.concat([source.unique(), target.unique().rename(source.name)]).unique().sort()


def rows_of(ids: "pl.Series", column: "pl.Series") -> npt.NDArray[np.int64]:
    """Row of each of ``column``'s ids within ``ids``; -1 where it is not there."""
    import polars as pl

    if is_whole(ids) and is_whole(column):
        return _rows_of_numbers(ids.to_numpy(), column.to_numpy())
    known = pl.DataFrame({"id": ids.cast(pl.String), "row": np.arange(len(ids))})
    asked = pl.DataFrame({"id": column.cast(pl.String)})
    found = asked.join(known, on="id", how="left", maintain_order="left")["row"]
    return found.fill_null(-1).to_numpy()


def _rows_of_numbers(ids: npt.NDArray[np.int64], asked: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    low, high = int(ids.min()), int(ids.max())
    if high - low < 8 * len(ids) + 1024:  # ids close together: one look-up table
        table = np.full(high - low + 1, -1, dtype=np.int64)
        table[ids - low] = np.arange(len(ids))
        if low <= int(asked.min()) and int(asked.max()) <= high:
            return table[asked - low]
        inside = (asked >= low) & (asked <= high)
        return np.where(inside, table[np.where(inside, asked, low) - low], -1)
    order = np.argsort(ids)
    place = np.minimum(np.searchsorted(ids, asked, sorter=order), len(ids) - 1)
    rows = order[place]
    return np.where(ids[rows] == asked, rows, -1)
