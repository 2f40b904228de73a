"""Cells of text into values, as people and programs write them: nothing, numbers, yes and no, dates."""

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

# Written where nothing is known. "none" and "unknown" are not among them: they may be classes of their own.
MISSING = ("", "na", "n/a", "n.a.", "#n/a", "nan", "-nan", "<na>", "null", "nil", "?", "-", "--", "—", ".")
YES, NO = ("true", "yes", "y", "t"), ("false", "no", "n", "f")
# Of the cells that are not missing, so many must be of a kind for the column to be of it.
MOST = 0.9

_MONEY = r"(?i)^\s*(?:[$€£¥₹₽]|usd|eur|gbp|chf|jpy)\s*|\s*(?:[$€£¥₹₽]|usd|eur|gbp|chf|jpy)\s*$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"
_SPACED = r"^\(?[+-]?\d{1,3}([ \u00a0\u202f'’]\d{3})+([.,]\d+)?\)?$"
_DECIMAL_COMMA = r"^[+-]?\d{1,3}(\.\d{3})*,\d+$|^[+-]?\d*,\d+$"
_WITH_COMMA = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$|^[+-]?\d*(,\d+)?$"
_TIME = r"^(.*\d.*?)[T ]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?$"
_DATE = r"^\d{1,4}[-/. ]\w{1,9}[-/. ,]+\d{1,4}$|^[A-Za-z]{3,9} \d{1,2},? \d{4}$|^(19|20)\d{6}$"
# As polars writes them; of two that read the same cells, the first is taken.
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d")
DATES_IN_WORDS = ("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y")
SAME_CELLS = {"%m/%d/%Y": "%d/%m/%Y", "%d-%m-%Y": "%m-%d-%Y"}  # where no day is above 12


@dataclass(frozen=True, eq=False)
class Read:
    """Values of a column, null where there is none; `how` says what was assumed of its writing."""

    values: pl.Series
    how: str = ""

    @property
    def count(self) -> int:
        return len(self.values) - self.values.null_count()


def stripped(column: pl.Series, missing: Collection[str] = MISSING) -> pl.Series:
    """Text without white space around it; null where the cell says that nothing is known."""
    text = column.cast(pl.String).str.strip_chars()
    return where(~text.str.to_lowercase().is_in([word.lower() for word in missing]), text)


def where(mask: pl.Series, values: pl.Series, other: pl.Series | None = None) -> pl.Series:
    """`values` where the mask is true, else `other`, or null."""
    return pl.select(pl.when(mask).then(values).otherwise(other).alias(values.name)).to_series()


def plain_numbers(text: pl.Series) -> pl.Series:
    """Float64, null for what is no finite number in its plain form."""
    values = text.cast(pl.Float64, strict=False)
    return values if values.is_finite().all() else where(values.is_finite(), values)


def numbers(text: pl.Series) -> Read:
    """Numbers, also with separators of thousands, a decimal comma, a currency or a per cent sign."""
    text = text.str.strip_chars()
    known = len(text) - text.null_count()
    plain = Read(plain_numbers(text))
    if plain.count == known:
        return plain
    percent = text.str.ends_with("%").fill_null(False)
    bare = text.str.strip_chars_end("% ").str.replace_all(_MONEY, "").str.replace_all("[−–]", "-")
    bare = where(bare.str.contains(_SPACED), bare.str.replace_all(r"[ \u00a0\u202f'’]", ""), bare)
    bare = bare.str.replace(r"^\((.*)\)$", "-$1").str.replace_all(_MONEY, "")
    comma = bare.str.contains(_THOUSANDS).sum() < bare.str.contains(_DECIMAL_COMMA).sum()
    if comma:
        points = bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        digits, how = where(bare.str.contains(_WITH_COMMA), points), "a decimal comma"
    else:
        grouped = bare.str.contains(_THOUSANDS).fill_null(False)
        digits = where(grouped, bare.str.replace_all(",", "", literal=True), bare)
        how = "a comma between thousands" if grouped.any() else "signs around it"
    values = plain_numbers(digits)
    cleaned = Read(where(percent, values / 100, values), how)
    return cleaned if cleaned.count > plain.count else plain


def yes_or_no(text: pl.Series) -> Read:
    """1 for yes, 0 for no."""
    words = {**dict.fromkeys(YES, 1.0), **dict.fromkeys(NO, 0.0)}
    return Read(text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Float64))


def dates(text: pl.Series) -> Read | None:
    """Days since 1970, with the time of day as a fraction; None where most cells are no dates."""
    known = len(text) - text.null_count()
    parts = text.str.extract_groups(_TIME).struct.unnest() if known else None
    day = text if parts is None else parts["1"].fill_null(text)
    day = day.str.strip_chars(" ,")
    if parts is None or day.str.contains(_DATE).sum() < MOST * known:
        return None
    best, how = None, ""
    for form in (*DATES, *DATES_IN_WORDS):
        found = day.str.to_date(form, strict=False)
        found = where(found.dt.year() >= 1000, found)
        if best is None or found.null_count() < best.null_count():
            best, how = found, form
        if found.null_count() == text.null_count():
            break
    if best is None or len(best) - best.null_count() < MOST * known:
        return None
    other = SAME_CELLS.get(how)
    unsure = other is not None and day.str.to_date(other, strict=False).null_count() == best.null_count()
    clock = [parts[name].cast(pl.Float64).fill_null(0.0) for name in ("2", "3", "4")]
    days = best.cast(pl.Int32).cast(pl.Float64) + (clock[0] + (clock[1] + clock[2] / 60) / 60) / 24
    return Read(days, f"read as {how}, though {other} would do as well" if unsure else "")


def decimal_years(days: pl.Series) -> pl.Series:
    """Days since 1970 as years: the first of July 2012 is 2012.5."""
    date = days.floor().cast(pl.Int32).cast(pl.Date)
    first = date.dt.truncate("1y")
    start, end = (day.cast(pl.Int32) for day in (first, first.dt.offset_by("1y")))
    return date.dt.year() + (days - start) / (end - start)
