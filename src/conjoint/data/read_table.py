"""CSV, TSV (gzipped or not) and Parquet into a table of text, with bounds and one-line errors.

Every column comes out as text: what a column means (an id, a number, a class) is decided where it is used, so
an id such as "007" or a number with a typo on line 90000 is never guessed away.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from conjoint.data.limits import ALWAYS_FINE, MAX_BYTES, MAX_RATIO
from conjoint.data.parquet_size import unpacked_bytes
from conjoint.errors import InputError

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", " ": "space"}

# First bytes of files that are no text, whatever their name says.
_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80": "a pickle, which can run code and is never opened",
    b"\xff\xfe": "UTF-16 text (save it as UTF-8)",
    b"\xfe\xff": "UTF-16 text (save it as UTF-8)",
    b"\x1f\x8b": "gzipped twice",
}


def read_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The file's bytes, unzipped if it is gzipped (by content, not by name), within bounds."""
    file = Path(path)
    try:
        size = file.stat().st_size
        if not file.is_file():
            raise InputError(f"{file} is not a file; name the table itself")
        if size > max_bytes:
            raise InputError(f"{file} has {size:,} bytes, more than the limit of {max_bytes:,}")
        raw = file.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; check the path") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror})") from None
    if not raw:
        raise InputError(f"{file} is empty")
    return _unzip(raw, file, max_bytes) if raw[:2] == b"\x1f\x8b" else raw


def _unzip(raw: bytes, file: Path, max_bytes: int) -> bytes:
    bound = min(max_bytes, max(ALWAYS_FINE, MAX_RATIO * len(raw)))
    try:
        with gzip.open(BytesIO(raw)) as stream:
            out = stream.read(bound + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file} is not a whole gzip file ({error}); fetch or pack it again") from None
    if len(out) > bound:
        raise InputError(f"{file} swells from {len(raw):,} to more than {bound:,} bytes; not unpacked")
    if not out:
        raise InputError(f"{file} is empty once unzipped")
    return out


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = True,
    max_bytes: int = MAX_BYTES,
) -> "pl.DataFrame":
    """A table of text columns. ``header=None``: there is one unless the first line is all numbers."""
    import polars as pl

    file = Path(path)
    if file.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(file, max_bytes)
    raw = _text(read_bytes(file, max_bytes), file)
    comment = "#" if raw.startswith(b"#") else None
    first = _first_line(raw, comment)
    separator = delimiter or _sniff(first, file)
    if len(separator.encode()) != 1:
        raise InputError(f"delimiter={separator!r} must be one character, such as ',' or '\\t'")
    cells = first.split(separator)
    if header is None:
        header = not all(_is_number(cell) for cell in cells)
    _refuse_blow_up(len(cells), raw, file)
    try:
        frame = pl.read_csv(
            raw,
            separator=separator,
            has_header=header,
            infer_schema=False,
            comment_prefix=comment,
            glob=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(
            f"{file} is not a {DELIMITERS.get(separator, separator)}-separated table: "
            f"{_where(raw, separator, error)}"
        ) from None
    frame = frame.rename({c: c.strip() for c in frame.columns}) if _strip_is_safe(frame.columns) else frame
    if frame.width < 2:
        named = DELIMITERS.get(separator, repr(separator))
        raise InputError(f"{file} has one column only when split at each {named}; name the right delimiter")
    if frame.height == 0:
        raise InputError(f"{file} has a header but no rows")
    return frame


def _read_parquet(file: Path, max_bytes: int) -> "pl.DataFrame":
    import polars as pl

    raw = read_bytes(file, max_bytes)
    try:
        size = unpacked_bytes(raw)
        if size > max_bytes:
            raise InputError(f"{file} unpacks to {size:,} bytes, more than the limit of {max_bytes:,}")
        with _without_panics():
            lazy = pl.scan_parquet(BytesIO(raw), glob=False)
            columns = lazy.collect_schema()
            height = lazy.select(pl.len()).collect().item()
        # A column of one repeated value costs nothing on disk, and 8 bytes a row or more here.
        if height * len(columns) * 8 > max_bytes:
            raise InputError(f"{file} states {height:,} rows of {len(columns)} columns; more than the limit")
        nested = [name for name, kind in columns.items() if kind.is_nested()]
        if nested:
            raise InputError(
                f"{file}: column {nested[0]!r} holds lists or records; give one column per number"
            )
        with _without_panics():
            frame = lazy.collect().select(pl.all().cast(pl.String))
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise InputError(f"{file} is not a whole Parquet file ({_first(error)})") from None
    if frame.height == 0 or frame.width < 2:
        raise InputError(f"{file} has {frame.height} rows of {frame.width} columns; too few for a graph")
    return frame


@contextmanager
def _without_panics() -> Iterator[None]:
    """On a damaged file the library prints pages of its own before it raises; the user gets our one line."""
    try:
        kept = os.dup(2)
    except OSError:  # no stderr to keep clean
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _text(raw: bytes, file: Path) -> bytes:
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise InputError(f"{file} is {what}, not a table of text")
    if b"\x00" in raw:
        raise InputError(f"{file} holds zero bytes, so it is no text; save it as UTF-8 CSV")
    return raw.removeprefix(b"\xef\xbb\xbf")


def _refuse_blow_up(width: int, raw: bytes, file: Path) -> None:
    """A cell costs a byte on disk unless the line just stops; a wide header over short lines swells."""
    if width * raw.count(b"\n") > 4 * len(raw) + ALWAYS_FINE // 16:
        raise InputError(f"{file} has {width:,} columns in its first line but far fewer in most others")


def _first_line(raw: bytes, comment: str | None) -> str:
    start = 0
    while comment and raw.startswith(comment.encode(), start):
        start = raw.find(b"\n", start) + 1
        if start == 0:
            return ""
    end = raw.find(b"\n", start)
    return raw[start : len(raw) if end < 0 else end].decode("utf-8", "replace").strip("\r")


def _sniff(line: str, file: Path) -> str:
    if file.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    found = {mark: line.count(mark) for mark in DELIMITERS if mark != " "}
    best = max(found, key=lambda mark: found[mark])
    if found[best]:
        return best
    return " " if " " in line.strip() else ","


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _strip_is_safe(columns: list[str]) -> bool:
    return len({c.strip() for c in columns}) == len(columns)


def _where(raw: bytes, separator: str, error: BaseException) -> str:
    """Name the line at fault: the library's message often lacks it."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as bad:
        return f"line {raw.count(bytes([10]), 0, bad.start) + 1} is not UTF-8"
    mark, width = separator.encode(), None
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip() or line.startswith(b"#") or b'"' in line:
            continue
        cells = line.count(mark) + 1
        width = width or cells
        if cells != width:
            return f"line {number} has {cells} cells, earlier ones {width}"
    return _first(error)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
