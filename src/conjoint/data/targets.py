"""What a column of labels looks like, before hundreds of classes are trained without a word."""

import numpy as np
import polars as pl

from ..errors import InputError, argument
from .cells import plain_numbers
from .columns import Place, labels_of, listed, taken_for_missing

MANY = 30  # classes: fewer are taken as they are, whatever their names
ENOUGH = 20  # labels: fewer say nothing about what the column is
RARE = 3  # labels: a class with fewer is hard to learn, and with one cannot be judged
SEPARATORS = ("|", ";", ",", "/", "+")


def check_target(column: pl.Series, place: Place) -> None:
    """Refuse a target that is no class: a quantity, several labels in a cell, a name for every node."""
    known = column.drop_nulls()
    kinds = known.unique()
    if len(known) < ENOUGH:
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
