"""Columns of features into a matrix: numbers, dates, categories and words, and what was made of each."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ..errors import Faults, InputError, argument
from ..graph.sparse import SPARSE_BELOW
from ..text import count
from .cells import Read, numbers
from .columns import Place, codes_of, labels_of, listed, taken_for_missing
from .kinds import MAX_GUESSED_CATEGORIES, READERS, Kind, kind_of
from .texts import model_folder, sentence_block, text_block

Array = npt.NDArray[Any]
MAX_CATEGORIES = 1000  # columns that one category may become; rarer values share one
OTHER = "other, rarer"
YEAR = 365.25
# Name of a cycle -> its length in days, and the least number of days that a column must span to show it.
CYCLES = {"hour": (1.0, 2.0), "weekday": (7.0, 21.0), "month": (YEAR, 2 * YEAR)}


class Features:
    """The matrix, column by column, with a line about each column and notes on what was done.

    With `learn_from`, words, categories, scales and kinds of columns are those of the first so many rows.
    """

    def __init__(self, place: Place, columns: Any, standardise: bool, learn_from: int | None) -> None:
        self.place, self.columns, self.standardise = place, columns, standardise
        self.known = slice(learn_from)
        self.blocks: list[Any] = []
        self.names: list[str] = []
        self.numeric: list[tuple[str, pl.Series]] = []
        self.about: dict[str, str] = {}
        self.told: dict[str, list[str]] = defaultdict(list)

    def add(self, given: pl.Series) -> None:
        column = self.columns.cells(given)
        kind = self.kind(column)
        about = kind.name + (f", {kind.why}" if kind.why else "")
        name = column.name
        if kind.name == "left out":
            about = f"left out: {kind.why}"
            takes = f"; {argument(kind.taken_by, name)} takes it" if kind.taken_by else ""
            told = f"left out as {kind.why}: {{}}" + takes
            self.told[told].append(repr(name))
        elif kind.name == "text":
            about = self._text(column)
            if name not in self.columns.text:
                self.told["read as text: {}"].append(repr(name))
        elif kind.name == "category":
            about = self._one_hot(column)
        elif kind.read is not None:
            about += self._filled(column, kind.read, kind.name == "date")
        marks = self._marks(given, column)
        self.about[name] = about + (f"; {marks} taken for missing" if marks else "")

    def kind(self, column: pl.Series) -> Kind:
        """As the user said, else as the cells say."""
        columns, known = self.columns, column[self.known]
        if column.name in columns.text:
            return Kind("text")
        if column.name in columns.categorical:
            return Kind("category")
        if column.name in columns.numeric:
            return Kind("number", numbers(column))
        if columns.reading == 1:
            plain = known.drop_nulls().str.strip_chars()
            if plain.cast(pl.Float64, strict=False).null_count() == 0:
                return Kind("number", numbers(column))
            if plain.n_unique() <= MAX_GUESSED_CATEGORIES:
                return Kind("category")
        found = kind_of(known, self.standardise)
        if found.read is None or len(known) == len(column):
            return found
        later = READERS[found.name](column[len(known) :])  # by itself: known rows stay what they were
        nothing = pl.Series(column.name, [None] * (len(column) - len(known)), dtype=pl.Float64)
        return Kind(found.name, Read(found.read.values.append(later.values if later else nothing)), found.why)

    def _text(self, column: pl.Series) -> str:
        """TF-IDF, or vectors of the model that was named; only to be looked at, these are not made."""
        model = self.columns.text_model
        if model is None:
            words, block = text_block(column, str(self.place), self.columns, self.known)
            self._append(words, block)
            return f"text: {len(words)} columns"
        if self.columns.preview:
            model_folder(model)
        else:
            self._append(*sentence_block(column, model, self.known))
        return f"text: vectors of {Path(model).name}"

    def _append(self, names: Sequence[str], block: Any) -> None:
        self.names += names
        self.blocks.append(block)

    def _marks(self, given: pl.Series, column: pl.Series) -> str:
        marks = taken_for_missing(given, column)
        if marks:
            self.told["taken for missing values: {}"].append(f"{marks} in {column.name!r}")
        return marks

    def _one_hot(self, column: pl.Series) -> str:
        codes, kinds = labels_of(column, self.known.stop)
        if self.columns.reading > 1 and len(kinds) > MAX_CATEGORIES:
            times = column[self.known].drop_nulls().value_counts(name="n")
            often = times.sort(["n", column.name], descending=[True, False])[column.name]
            kinds = [*often[: MAX_CATEGORIES - 1].sort().to_list(), OTHER]
            codes = codes_of(column, kinds)
            codes[(codes < 0) & column.is_not_null().to_numpy()] = MAX_CATEGORIES - 1
            self.told[
                f"only the {MAX_CATEGORIES - 1} most frequent values have columns of their own: {{}}"
            ].append(repr(column.name))
        strange = column.filter(pl.Series(codes < 0) & column.is_not_null()).unique().sort()
        if len(strange):
            said = f"{column.name!r} ({listed([repr(word) for word in strange], 3)})"
            self.told["values that training did not know, taken as no category: {}"].append(said)
        rows = np.flatnonzero(codes >= 0)
        if column.null_count():
            empty = count(column.null_count(), "empty cell")
            self.told["{} as no category"].append(f"column {column.name!r}: {empty}")
        ones = np.ones(len(rows), dtype=np.float32)
        block = sp.csr_matrix((ones, (rows, codes[rows])), shape=(len(codes), len(kinds)))
        self._append([f"{column.name}={kind}" for kind in kinds], block)
        return f"category, {count(len(kinds), 'value')}"

    def _filled(self, column: pl.Series, read: Read, is_date: bool) -> str:
        """A column of numbers, empty cells with the median, and a column that marks them."""
        values, about = read.values.alias(column.name), ""
        learnt = values[self.known]
        stray = column.filter(values.is_null() & column.is_not_null())
        if len(stray):
            shown = listed([repr(word) for word in stray.unique().sort()], 3)
            row = self.place.rows(values.is_null() & column.is_not_null())
            self.told["cells that are no finite numbers, taken as empty: {}"].append(
                f"{shown} in {column.name!r} ({row})"
            )
        if learnt.null_count() == len(learnt):
            raise InputError(
                f"{self.place}, column {column.name!r} holds no numbers; leave it out with "
                f"{argument('ignore', column.name)}"
            )
        if is_date and (cycles := self._cycles(values)):
            about = f" with {' and '.join(cycles)} as cycles"
        if is_date:
            values = values - float(learnt.min())  # type: ignore[arg-type]
            learnt = values[self.known]
        if values.null_count():
            middle = float(learnt.median())  # type: ignore[arg-type]
            empty, values = values.is_null(), values.fill_null(middle)
            if learnt.null_count():
                self._append(
                    [f"{column.name} is empty"], sp.csr_matrix(empty.cast(pl.Float32).to_numpy()[:, None])
                )
            cells = count(int(empty.sum()), "empty cell")
            self.told["filled with the median, and marked in a column of its own: {}"].append(
                f"{cells} of {column.name!r} ({middle:g})"
            )
            about += f", {cells} filled with {middle:g}"
        if is_date:
            self.told["dates became days since the earliest: {}"].append(repr(column.name))
        self.numeric.append((column.name, values))
        return about

    def _cycles(self, days: pl.Series) -> list[str]:
        """Where in the day, the week and the year a date is, as far as the column spans them."""
        found = []
        learnt = days[self.known].drop_nulls()
        span = float(learnt.max()) - float(learnt.min())  # type: ignore[arg-type]
        for cycle, (length, least) in CYCLES.items():
            if span < least or (cycle == "hour" and bool((learnt == learnt.floor()).all())):
                continue
            angle = (days.fill_null(0.0) if cycle == "hour" else days.floor().fill_null(0.0)) * (
                2 * np.pi / length
            )
            there = days.is_not_null().cast(pl.Float64)
            both = [(wave * there).to_numpy() for wave in (angle.sin(), angle.cos())]
            names = [f"{days.name} {cycle} {wave}" for wave in ("sin", "cos")]
            self._append(names, np.column_stack(both).astype(np.float32))
            found.append(cycle)
        return found

    def matrix(self, notes: list[str]) -> tuple[Any, list[str]]:
        """Numbers first, then the others in the order of the table; (None, []) if there are none."""
        for said, items in self.told.items():
            notes.append(said.format(listed(items)))
        if self.numeric:
            kept, block = self._scaled(notes)
            if kept:
                self.blocks.insert(0, block)
                self.names = kept + self.names
        if not self.blocks:
            return None, []
        if any(sp.issparse(block) for block in self.blocks):
            return sp.hstack([sp.csr_matrix(block) for block in self.blocks], format="csr"), self.names
        return np.hstack(self.blocks), self.names

    def _scaled(self, notes: list[str]) -> tuple[list[str], Any]:
        names = [name for name, _ in self.numeric]
        values = np.column_stack([column.to_numpy() for _, column in self.numeric])
        if self.standardise:
            varies = values[self.known].min(axis=0) != values[self.known].max(axis=0)
            if not varies.all():
                constant = [name for name, keep in zip(names, varies, strict=True) if not keep]
                notes.append(f"left out as constant: {listed([repr(name) for name in constant])}")
                self.about |= dict.fromkeys(constant, "left out: constant")
                names = [name for name, keep in zip(names, varies, strict=True) if keep]
                values = values[:, varies]
            if not names:
                return [], None
            largest = np.abs(values[self.known]).max(axis=0)
            values = values / largest  # first, so that squares of huge numbers stay finite
            learnt = values[self.known]
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
            raise InputError(f"{self.place}, column {bad!r} has values too large for float32; rescale it")
        return names, packed


def features_of(
    frame: pl.DataFrame,
    place: Place,
    notes: list[str],
    columns: Any,
    *,
    standardise: bool = True,
    learn_from: int | None = None,
) -> tuple[Any, list[str], dict[str, str]]:
    """Feature matrix, one name per column of it, and what each column of the table was taken for."""
    made, faults = Features(place, columns, standardise, learn_from), Faults()
    for column in frame.get_columns():
        with faults.noted():
            made.add(column)
    faults.raise_any()
    x, names = made.matrix(notes)
    return x, names, made.about
