"""Tables read a piece at a time: CSV, TSV and Parquet that need not fit into memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.read_table import DELIMITERS, _first_line, _is_number, _sniff, _text
from ..errors import InputError

if TYPE_CHECKING:
    import polars as pl

HEAD_BYTES = 1 << 20


def scan(path: str | Path, header: bool | None = True) -> "pl.LazyFrame":
    """A table that is read when asked. Text columns stay text; Parquet keeps its numbers as they are."""
    import polars as pl

    file = Path(path)
    try:
        with open(file, "rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{file}: {(error.strerror or str(error)).lower()}; check the path") from None
    if not head:
        raise InputError(f"{file} is empty")
    if file.suffix.lower() in (".parquet", ".pq"):
        return pl.scan_parquet(file, glob=False)
    if head[:2] == b"\x1f\x8b":
        raise InputError(f"{file} is gzipped, which cannot be read in pieces; unpack it or write .parquet")
    head = _text(head, file)
    comment = "#" if head.startswith(b"#") else None
    first = _first_line(head, comment)
    separator = _sniff(first, file)
    if header is None:
        header = not all(_is_number(cell) for cell in first.split(separator))
    if first.count(separator) == 0:
        named = DELIMITERS.get(separator, repr(separator))
        raise InputError(f"{file} has one column only when split at each {named}; use commas or tabs")
    return pl.scan_csv(
        file, separator=separator, has_header=header, infer_schema=False, comment_prefix=comment, glob=False
    )


def columns_of(table: "pl.LazyFrame", path: str | Path) -> list[str]:
    import polars as pl

    try:
        schema = table.collect_schema()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{path} is not a whole table ({_first(error)})") from None
    nested = next((name for name, kind in schema.items() if kind.is_nested()), None)
    if nested is not None:
        raise InputError(f"{path}: column {nested!r} holds lists or records; give one column per number")
    return list(schema)


def pieces(
    table: "pl.LazyFrame", columns: list[str], rows: int, path: str | Path
) -> Iterator["pl.DataFrame"]:
    """The named columns, so many rows at a time, in the order of the file."""
    import polars as pl

    try:
        yield from table.select(columns).collect_batches(chunk_size=rows, maintain_order=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{path} is not a whole table ({_first(error)})") from None


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
