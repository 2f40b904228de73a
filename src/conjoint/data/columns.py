"""Columns of the user's tables into ids, labels, features, times and splits."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ..errors import InputError
from ..graph.sparse import SPARSE_BELOW
from ..text import count

# As Python would print it: "7" but not "07", "+7" or "7.0". Those stay text, so that no id changes.
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
# A text column with more different values than this is no category unless the user says so.
MAX_GUESSED_CATEGORIES = 100
# TF-IDF keeps this many of the most frequent words.
MAX_WORDS = 5000
SPLIT_NAMES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


def whole_if_all_are(column: pl.Series) -> pl.Series:
    """A text column as Int64 if every value is a whole number in its plain form, else as it is."""
    if column.dtype != pl.String or not column.str.contains(WHOLE_NUMBER).all():
        return column
    return column.cast(pl.Int64)


def ids_of(column: pl.Series, place: str, before: int = 0) -> pl.Series:
    """Ids as Int64 where every one is written as a whole number, else as text. None may be missing.

    `before` rows of the table came in earlier pieces.
    """
    if column.null_count():
        row = before + int(column.is_null().arg_max() or 0) + 1
        raise InputError(f"{place} row {row}, column {column.name!r}: no id; fill it or delete the row")
    return column.cast(pl.Int64) if column.dtype.is_integer() else whole_if_all_are(column.cast(pl.String))


def joined_ids(parts: Sequence[pl.Series]) -> pl.Series:
    """Pieces of ids as one column: of numbers if all pieces are."""
    whole = all(part.dtype == pl.Int64 for part in parts)
    return pl.concat([part if whole else part.cast(pl.String) for part in parts])


def require_unique(column: pl.Series, place: str) -> None:
    if column.n_unique() == len(column):
        return
    again = int((~column.is_first_distinct()).arg_max() or 0)
    before = int((column == column[again]).arg_max() or 0)
    raise InputError(
        f"{place}: node id {column[again]!r} stands in row {before + 1} and again in row {again + 1}; "
        "keep one row per node"
    )


def ids_of_edges(pieces: Iterable[pl.DataFrame], ends: tuple[str, str], place: str) -> pl.Series:
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


def _codes(column: pl.Series, names: list[str]) -> npt.NDArray[np.int64]:
    """The place of each value among `names`, -1 where it is none of them."""
    place = column.cast(pl.Enum(names), strict=False).to_physical()
    return place.cast(pl.Int64).fill_null(-1).to_numpy(writable=True)


def labels_of(column: pl.Series, learn_from: int | None = None) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Class numbers (-1 where the cell is empty) and class names, sorted by value or by letters.

    With `learn_from`, the first so many rows decide which classes there are; others are -1 too.
    """
    words = column[:learn_from].drop_nulls().unique().cast(pl.String)
    names = whole_if_all_are(words).sort().cast(pl.String).to_list()
    return _codes(column, names), names


def numbers_of(column: pl.Series, place: str, before: int = 0) -> npt.NDArray[np.float64]:
    """A column of finite numbers; the first cell that is none is named."""
    values = column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    good = values.is_finite().fill_null(False)
    if not good.all():
        row = int((~good).arg_max() or 0)
        found = "no value" if column[row] is None else repr(column[row])
        raise InputError(
            f"{place} row {before + row + 1}, column {column.name!r}: {found} is no finite number; fill it, "
            "name the column's kind, or ignore the column"
        )
    return values.to_numpy()


def split_of(column: pl.Series, place: str) -> tuple[npt.NDArray[np.int64], ...]:
    """Node rows of train, validation and test, from a column that says so in words; empty = in none."""
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    codes = _codes(words, list(SPLIT_NAMES))
    stray = (codes < 0) & words.is_not_null().to_numpy()
    if stray.any():
        row = int(np.argmax(stray))
        raise InputError(
            f"{place} row {row + 1}, column {column.name!r}: {words[row]!r} is none of train, val, test"
        )
    part = np.array([*SPLIT_NAMES.values(), -1])[codes]
    return tuple(np.flatnonzero(part == p) for p in range(3))


def features_of(
    frame: pl.DataFrame,
    place: str,
    notes: list[str],
    *,
    text: Sequence[str] = (),
    categorical: Sequence[str] = (),
    standardise: bool = True,
    learn_from: int | None = None,
) -> tuple[Any, list[str]]:
    """Feature matrix and one name per column; (None, []) for a frame without columns.

    Whatever is not named in `text` or `categorical` is numeric or, if it has few values, a category.
    With `learn_from`, words, categories, scales and kinds of columns are those of the first so many rows.
    """
    blocks: list[Any] = []
    names: list[str] = []
    numeric = []
    for column in frame.get_columns():
        if column.name in text:
            words, block = _tf_idf(column, place, learn_from)
        elif column.name in categorical or _is_category(column[:learn_from], place):
            words, block = _one_hot(column, notes, learn_from)
        else:
            numeric.append(column)
            continue
        blocks.append(block)
        names += words
    if numeric:
        kept, block = _numeric(numeric, standardise, place, notes, learn_from)
        if kept:
            blocks.insert(0, block)
            names = kept + names
    if not blocks:
        return None, []
    if any(sp.issparse(block) for block in blocks):
        return sp.hstack([sp.csr_matrix(block) for block in blocks], format="csr"), names
    return np.hstack(blocks), names


def _is_category(column: pl.Series, place: str) -> bool:
    stripped = column.drop_nulls().str.strip_chars()
    if stripped.cast(pl.Float64, strict=False).null_count() == 0:
        return False
    kinds = stripped.n_unique()
    if kinds <= MAX_GUESSED_CATEGORIES:
        return True
    row = int(column.str.strip_chars().cast(pl.Float64, strict=False).is_null().arg_max() or 0)
    raise InputError(
        f"{place}, column {column.name!r}: {kinds} different values, not all numbers (row {row + 1}: "
        f"{column[row]!r}); name it in text=, categorical= or ignore="
    )


def _one_hot(column: pl.Series, notes: list[str], learn_from: int | None) -> tuple[list[str], sp.csr_matrix]:
    codes, kinds = labels_of(column, learn_from)
    rows = np.flatnonzero(codes >= 0)
    if len(rows) < len(codes):
        notes.append(f"column {column.name!r}: {count(len(codes) - len(rows), 'empty cell')} as no category")
    block = sp.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, codes[rows])), shape=(len(codes), len(kinds))
    )
    return [f"{column.name}={kind}" for kind in kinds], block


def _tf_idf(column: pl.Series, place: str, learn_from: int | None) -> tuple[list[str], sp.csr_matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # half a second that other tables are spared

    vectorizer = TfidfVectorizer(max_features=MAX_WORDS, dtype=np.float32)
    texts = column.fill_null("").to_list()
    try:
        block = vectorizer.fit(texts[:learn_from]).transform(texts)
    except ValueError:
        raise InputError(f"{place}, column {column.name!r} holds no words; ignore it") from None
    return [f"{column.name}:{word}" for word in vectorizer.get_feature_names_out()], sp.csr_matrix(block)


def _numeric(
    columns: Sequence[pl.Series], standardise: bool, place: str, notes: list[str], learn_from: int | None
) -> tuple[list[str], Any]:
    values = np.column_stack([numbers_of(column, place) for column in columns])
    names = [column.name for column in columns]
    if standardise:
        varies = values[:learn_from].min(axis=0) != values[:learn_from].max(axis=0)
        if not varies.all():
            notes.append(f"dropped {count(int((~varies).sum()), 'constant column')}")
            names = [name for name, keep in zip(names, varies, strict=True) if keep]
            values = values[:, varies]
        if not names:
            return [], None
        largest = np.abs(values[:learn_from]).max(axis=0)
        values = values / largest  # first, so that squares of huge numbers stay finite
        learnt = values[:learn_from]
        if np.count_nonzero(learnt) < SPARSE_BELOW * learnt.size:
            # Centring would fill in the zeros: mostly empty columns (bags of words) are only scaled.
            notes.append(f"scaled {count(len(names), 'mostly empty numeric column')} to at most 1")
        else:
            values = (values - learnt.mean(axis=0)) / learnt.std(axis=0)
            notes.append(f"standardised {count(len(names), 'numeric column')}")
    with np.errstate(over="ignore"):
        packed = values.astype(np.float32)
    if not np.isfinite(packed).all():
        bad = names[int(np.argmax(~np.isfinite(packed).all(axis=0)))]
        raise InputError(f"{place}, column {bad!r} has values too large for float32; rescale it")
    return names, packed
