"""What a column of features is: a number, a date, yes or no, a category, text, or nothing to learn from.

And what a column of labels looks like, before hundreds of classes are trained without a word.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..errors import InputError, argument
from .cells import MOST, Read, dates, numbers, plain_numbers, yes_or_no
from .columns import SPLIT_NAMES, Place, labels_of, listed, taken_for_missing

# A text column with more different values than this is no category unless its values come again and again.
MAX_GUESSED_CATEGORIES = 100
ENOUGH_ROWS = 20  # fewer say nothing about whether all values differ by chance
MANY = 30  # classes: fewer are taken as they are, whatever their names
RARE = 3  # labels: a class with fewer is hard to learn, and with one cannot be judged
SEPARATORS = ("|", ";", ",", "/", "+")
NEARLY_ALL = 0.95
EXACT = 2**53  # above it a number is a name: neighbouring ones are the same float
ID_NAME = re.compile(
    r"(^|[_\s.:-])(id|ids|uid|uuid|guid|key|index|idx|rowid|pk|serial)$|[a-z](Id|ID|Uuid)$", re.I
)
SPLIT_NAME = re.compile(
    r"^(is_?|in_?)?(train(ing)?|val(id(ation)?)?|test)(_?(mask|set|split))?$|^(split|fold|part)$", re.I
)
# Why a column is left out.
EMPTY, CONSTANT, IDENTIFIER, SPLIT = "empty", "constant", "an identifier", "a split"


@dataclass(frozen=True, eq=False)
class Kind:
    """`name` is number, date, yes/no, category, text or left out; `why` says what was assumed.

    `taken_by` is the argument that takes a column which is left out.
    """

    name: str
    read: Read | None = None
    why: str = ""
    taken_by: str = ""


def is_index(name: str) -> bool:
    """Whether a column is the row number that pandas or a spreadsheet adds."""
    return name == "" or name.lower().startswith("unnamed:") or name.lower() == "index"


def kind_of(column: pl.Series, standardise: bool) -> Kind:
    """Decided by the cells alone; `column` is text without what stands for a missing value."""
    known = column.drop_nulls()
    if not len(known):
        return Kind("left out", why=EMPTY)
    kinds = known.n_unique()
    if _is_split(column.name, known, kinds):
        return Kind("left out", why=SPLIT, taken_by="split")
    found = _number(column, known, kinds)
    if found is not None:
        day = (
            dates(column)
            if found.count == len(known) and known.str.contains(r"^(19|20)\d{6}$").all()
            else None
        )
        if day is not None:
            return Kind("date", day)
        if standardise and _is_identifier(column.name, found.values.drop_nulls()):
            return Kind("left out", why=IDENTIFIER, taken_by="numeric")
        return Kind("number", found, found.how)
    if kinds == 2 and (words := yes_or_no(column)).count == len(known):
        return Kind("yes/no", words)
    if (day := dates(column)) is not None:
        return Kind("date", day, day.how)
    if kinds == 1 and len(known) == len(column):
        return Kind("left out", why=CONSTANT)
    return _words(column.name, known, kinds)


def _number(column: pl.Series, known: pl.Series, kinds: int) -> Read | None:
    """Numbers, if most cells are some, or all but one or two words that may stand for nothing."""
    found = numbers(column)
    if found.count == len(known):
        return found
    if not found.count:
        return None
    rest = column.filter(found.values.is_null() & column.is_not_null())
    few = kinds <= ENOUGH_ROWS and 2 * kinds <= len(known)  # grades 1, 2, 3, A are a category
    beside = rest.n_unique() <= 2 and found.values.n_unique() > ENOUGH_ROWS
    return found if beside or (found.count >= MOST * len(known) and not few) else None


def _is_split(name: str, known: pl.Series, kinds: int) -> bool:
    words = known.str.to_lowercase()
    says = 1 < kinds <= len(SPLIT_NAMES) and words.is_in(list(SPLIT_NAMES)).all()
    return says or (SPLIT_NAME.search(name) is not None and 1 < kinds <= 10)


def _is_identifier(name: str, values: pl.Series) -> bool:
    """Whole numbers that differ from row to row and are called so, count the rows, or are too long."""
    if len(values) < ENOUGH_ROWS:
        return False
    steps = values.diff().drop_nulls()
    if (steps == 1).all() and values[0] in (0.0, 1.0):
        return True
    named = ID_NAME.search(name) is not None or is_index(name) or values.max() > EXACT  # type: ignore[operator]
    return (
        bool(named)
        and bool((values == values.floor()).all())
        and values.n_unique() >= NEARLY_ALL * len(values)
    )


def _words(name: str, known: pl.Series, kinds: int) -> Kind:
    """A category, or prose, or a name of its own for nearly every row."""
    differ = kinds / len(known)
    unique = len(known) >= ENOUGH_ROWS and differ >= MOST
    if kinds <= MAX_GUESSED_CATEGORIES and not unique:
        return Kind("category")
    words = float(known.str.count_matches(r"\S+").mean() or 0)  # type: ignore[arg-type]
    if words >= 2 and differ >= 0.3:
        return Kind("text")
    return Kind("left out", why=IDENTIFIER, taken_by="text") if unique else Kind("category")


READERS: Mapping[str, Callable[[pl.Series], Read | None]] = {
    "number": numbers,
    "date": dates,
    "yes/no": yes_or_no,
}


def check_target(column: pl.Series, place: Place) -> None:
    """Refuse a target that is no class: a quantity, several labels in a cell, a name for every node."""
    known = column.drop_nulls()
    kinds = known.unique()
    if len(known) < ENOUGH_ROWS:
        return
    values, often = plain_numbers(kinds), len(known) / max(1, len(kinds))
    looks = remedy = ""
    several = _several(known, kinds)
    if values.null_count() == 0:
        fractions = bool((values != values.floor()).any())
        if (fractions and len(kinds) > 10 and often < 10) or (len(kinds) > MANY and often < 5):
            looks, remedy = "a quantity or an id", "cut it into a few ranges, or name another column"
    elif several:
        looks = f"several labels in one cell, separated by {several!r}"
        remedy = "keep one label per node, or make a column of yes and no for each and train on one"
    elif len(kinds) > MANY and often < 2:
        looks, remedy = "a name of nearly every node", "name a column whose values come again"
    if looks:
        raise InputError(
            f"{place}, column {column.name!r} looks like {looks} ({len(kinds)} different values in "
            f"{len(known)} labels, such as {listed([repr(k) for k in kinds.sort()], 3)}); {remedy}, or "
            f"give {argument('as_classes', True)} if every value is a class"
        )


def _several(known: pl.Series, kinds: pl.Series) -> str:
    """The sign between labels, if cells hold more than one of the labels that others hold alone."""
    for sign in SEPARATORS:
        if known.str.contains(sign, literal=True).mean() < 0.05:  # type: ignore[operator]
            continue
        parts = kinds.str.split(sign).explode().str.strip_chars()
        alone = float(parts.is_in(kinds.implode()).mean() or 0)  # type: ignore[arg-type]
        if parts.n_unique() < len(kinds) * (1 if alone > 0.5 else 0.5):
            return sign
    return ""


def class_notes(column: pl.Series, given: pl.Series, notes: list[str]) -> None:
    """What to know of the classes: markers taken for missing, rare ones, those that differ little."""
    if marked := taken_for_missing(given, column):
        notes.append(f"labels taken for missing: {marked}; {argument('missing', 'WORD')} names others")
    codes, names = labels_of(column)
    times = np.bincount(codes[codes >= 0], minlength=len(names))
    if len(names) == 1:
        notes.append(f"all labels are {names[0]!r}: there is nothing to learn from one class")
    rare = [f"{name!r} ({n})" for name, n in zip(names, times.tolist(), strict=True) if n < RARE]
    if rare:
        notes.append(f"classes with too few labels to learn: {listed(rare)}")
    if "-1" in names:
        notes.append(
            f"-1 is a class here; if it means that the label is not known: {argument('missing', -1)}"
        )
    lower: dict[str, list[str]] = {}
    for name in names:
        lower.setdefault(name.lower(), []).append(name)
    alike = [" and ".join(map(repr, group)) for group in lower.values() if len(group) > 1]
    if alike:
        notes.append(f"classes that differ in capital letters alone: {listed(alike)}")
