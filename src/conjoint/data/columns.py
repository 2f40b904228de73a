"""Columns of a node table into labels, features, times and splits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from conjoint.data.ids import whole_if_all_are
from conjoint.errors import InputError
from conjoint.graph.sparse import SPARSE_BELOW
from conjoint.text import count

if TYPE_CHECKING:
    import polars as pl

# A text column with more different values than this is no category unless the user says so.
MAX_GUESSED_CATEGORIES = 100
# TF-IDF keeps this many of the most frequent words.
MAX_WORDS = 5000

SPLIT_NAMES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


@dataclass(frozen=True)
class FeatureColumns:
    """How to read the columns of a node table; whatever is not named is numeric or, if short, a category."""

    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    standardise: bool = True


def labels_of(column: "pl.Series", learn_from: int | None = None) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Class numbers (-1 where the cell is empty) and class names, sorted by value or by letters.

    With `learn_from`, the first so many rows decide which classes there are; others are -1 too.
    """
    import polars as pl

    names = whole_if_all_are(column[:learn_from].drop_nulls().unique()).sort().cast(pl.String)
    codes = {name: code for code, name in enumerate(names.to_list())}
    return np.array([codes.get(v, -1) for v in column.to_list()], dtype=np.int64), names.to_list()


def numbers_of(column: "pl.Series", place: str) -> npt.NDArray[np.float64]:
    """A column of finite numbers; the first cell that is none is named."""
    import polars as pl

    values = column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    good = values.is_finite().fill_null(False)
    if not good.all():
        row = int((~good).arg_max() or 0)
        found = "no value" if column[row] is None else repr(column[row])
        raise InputError(
            f"{place} row {row + 1}, column {column.name!r}: {found} is no finite number; fill it, "
            "name the column's kind, or ignore the column"
        )
    return values.to_numpy()


def split_of(column: "pl.Series", place: str) -> tuple[npt.NDArray[np.int64], ...]:
    """Node rows of train, validation and test, from a column that says so in words; empty = in none."""
    words = [None if v is None else v.strip().lower() for v in column.to_list()]
    for row, word in enumerate(words):
        if word is not None and word not in SPLIT_NAMES:
            raise InputError(
                f"{place} row {row + 1}, column {column.name!r}: {word!r} is none of train, val, test"
            )
    part = np.array([-1 if word is None else SPLIT_NAMES[word] for word in words])
    return tuple(np.flatnonzero(part == p) for p in range(3))


def features_of(
    frame: "pl.DataFrame",
    options: FeatureColumns,
    place: str,
    notes: list[str],
    learn_from: int | None = None,
) -> tuple[Any, list[str]]:
    """Feature matrix and one name per column; (None, []) for a frame without columns.

    With `learn_from`, words, categories, scales and kinds of columns are those of the first so many rows.
    """
    blocks: list[Any] = []
    names: list[str] = []
    numeric = []
    for column in frame.get_columns():
        if column.name in options.text:
            words, block = _tf_idf(column, place, learn_from)
        elif column.name in options.categorical or _is_short_text(column[:learn_from], place):
            words, block = _one_hot(column, notes, learn_from)
        else:
            numeric.append(column)
            continue
        blocks.append(block)
        names += words
    if numeric:
        kept, block = _numeric(numeric, options.standardise, place, notes, learn_from)
        if kept:
            blocks.insert(0, block)
            names = kept + names
    if not blocks:
        return None, []
    if any(sp.issparse(block) for block in blocks):
        return sp.hstack([sp.csr_matrix(block) for block in blocks], format="csr"), names
    return np.hstack(blocks), names


def _is_short_text(column: "pl.Series", place: str) -> bool:
    import polars as pl

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


def _one_hot(
    column: "pl.Series", notes: list[str], learn_from: int | None = None
) -> tuple[list[str], sp.csr_matrix]:
    codes, kinds = labels_of(column, learn_from)
    rows = np.flatnonzero(codes >= 0)
    if len(rows) < len(codes):
        notes.append(f"column {column.name!r}: {count(len(codes) - len(rows), 'empty cell')} as no category")
    block = sp.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, codes[rows])), shape=(len(codes), len(kinds))
    )
    return [f"{column.name}={kind}" for kind in kinds], block


def _tf_idf(
    column: "pl.Series", place: str, learn_from: int | None = None
) -> tuple[list[str], sp.csr_matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(max_features=MAX_WORDS, dtype=np.float32)
    texts = column.fill_null("").to_list()
    try:
        block = vectorizer.fit(texts[:learn_from]).transform(texts)
    except ValueError:
        raise InputError(f"{place}, column {column.name!r} holds no words; ignore it") from None
    return [f"{column.name}:{word}" for word in vectorizer.get_feature_names_out()], sp.csr_matrix(block)


def _numeric(
    columns: Sequence["pl.Series"],
    standardise: bool,
    place: str,
    notes: list[str],
    learn_from: int | None = None,
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
