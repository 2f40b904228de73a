"""CSV, TSV (gzipped or not) and Parquet, whole or piece by piece, with bounds and one-line errors.

Every column comes out as text: what a column means (an id, a number, a class) is decided where it is used, so
an id such as "007" or a number with a typo on line 90000 is never guessed away.
"""

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..errors import InputError, argument
from ..text import count
from .parquet_size import unpacked_bytes

# A file of more bytes than this, packed or unpacked, is not read whole. Enough for 100 million edges; far
# below what would bring a workstation down.
MAX_BYTES = 4 * 2**30
# Honest tables shrink by 2 to 20 times, one-hot matrices by up to 200; a bomb by 1000.
MAX_RATIO = 500
# Below this, a high ratio harms nobody (a file of zeros is a legitimate file).
ALWAYS_FINE = 64 * 2**20
HEAD_BYTES = 1 << 20  # that tell the form of a table read in pieces
GZIP = b"\x1f\x8b"
DUPLICATED = "_duplicated_"  # polars calls the second column of a name so
# What begins a file of text that says how it is encoded.
MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
PARQUET = (".parquet", ".pq")
DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", " ": "space"}
BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)

# First bytes of files that are no text, whatever their name says.
_MAGIC = {
    b"PK\x03\x04": "a zip archive or a workbook (save the sheet as CSV)",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80": "a pickle, which can run code and is never opened",
    GZIP: "gzipped twice",
}


def read_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The file's bytes, unzipped if it is gzipped (by content, not by name), within bounds."""
    file = Path(path)
    with _readable(file) as size:
        if size > max_bytes:
            raise InputError(f"{file} has {size:,} bytes, more than the limit of {max_bytes:,}")
        raw = file.read_bytes()
    if raw[:2] != GZIP:
        return raw
    out = BytesIO()
    _unzip(file, out, min(max_bytes, max(ALWAYS_FINE, MAX_RATIO * len(raw))))
    return out.getvalue()


@contextmanager
def _readable(file: Path) -> Iterator[int]:
    """The size of a file that is there and not empty; one line if it cannot be read."""
    try:
        size = file.stat().st_size
        if not file.is_file():
            raise InputError(f"{file} is not a file; name the table itself")
        if not size:
            raise InputError(f"{file} is empty")
        yield size
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; check the path") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror})") from None


def _unzip(file: Path, out: IO[bytes], bound: int) -> None:
    """What a gzip file holds into the stream `out`, up to `bound` bytes."""
    total = 0
    try:
        with gzip.open(file) as stream:
            while piece := stream.read(HEAD_BYTES):
                total += len(piece)
                if total > bound:
                    said = f"swells from {file.stat().st_size:,} to more than {bound:,} bytes; not unpacked"
                    raise InputError(f"{file} {said}")
                out.write(piece)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{file} is not a whole gzip file ({error}); fetch or pack it again") from None
    if not total:
        raise InputError(f"{file} is empty once unzipped")


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = True,
    encoding: str | None = None,
    max_bytes: int = MAX_BYTES,
    notes: list[str] | None = None,
) -> pl.DataFrame:
    """A table of text columns. ``header=None``: there is one unless the first line is all numbers.

    What was assumed of the file goes into ``notes``.
    """
    file, notes = Path(path), [] if notes is None else notes
    if file.suffix.lower() in PARQUET:
        return _tidied(_read_parquet(file, max_bytes), file, notes)
    raw = _text(read_bytes(file, max_bytes), file, encoding, notes)
    form, width = _form(raw, file, delimiter, header)
    _refuse_blow_up(width, raw, file)
    separator = form["separator"]
    try:
        frame = pl.read_csv(raw, **form)
    except BROKEN as error:
        if not _ends_with(raw, separator):
            raise InputError(
                f"{file} is not a {DELIMITERS.get(separator, separator)}-separated table: "
                f"{_where(raw, separator, error)}"
            ) from None
        frame = pl.read_csv(raw, **form, truncate_ragged_lines=True)
        notes.append(f"{file}: rows end in a {DELIMITERS.get(separator, separator)} too many, left out")
    _refuse_narrow(frame.columns, file, separator)
    if frame.height == 0:
        raise InputError(f"{file} has a header but no rows; add some")
    if header is None and not form["has_header"]:
        notes.append(f"{file}: the first line is all numbers, so it is read as data and not as a header")
    return _tidied(frame.rename(_stripped(frame.columns)), file, notes)


def _tidied(frame: pl.DataFrame, file: Path, notes: list[str]) -> pl.DataFrame:
    """Without empty rows and nameless empty columns; names that stand twice are told."""
    twice = [name for name in frame.columns if DUPLICATED in name]
    if twice:
        shown = ", ".join(repr(name.partition(DUPLICATED)[0]) for name in twice[:3])
        notes.append(
            f"{file}: {shown} stands more than once in the header; later ones are called {twice[0]!r}"
        )
    nameless = [name for name in frame.columns if name.partition(DUPLICATED)[0] == ""]
    blank = [name for name in nameless if frame[name].null_count() == frame.height]
    if blank and frame.width - len(blank) >= 2:
        notes.append(f"{file}: left out {count(len(blank), 'column')} without a name or a value")
        frame = frame.drop(blank)
    if frame[:, 0].null_count():
        full = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        if 0 < full.height < frame.height:
            empty = count(frame.height - full.height, "empty row")
            notes.append(f"{file}: left out {empty}; rows are counted without them")
            frame = full
    return frame


def _ends_with(raw: bytes, separator: str) -> bool:
    """Whether every line but the first ends with the separator, as some programs write it."""
    _, *lines = raw.replace(b"\r", b"").split(b"\n")
    full = [line for line in lines if line]
    return bool(full) and all(line.endswith(separator.encode()) for line in full)


def _form(raw: bytes, file: Path, delimiter: str | None, header: bool | None) -> tuple[dict[str, Any], int]:
    """How polars shall read the text, and how many cells its first line has."""
    comment = "#" if raw.startswith(b"#") else None
    first = _first_line(raw, comment)
    separator = delimiter or _sniff(first, file)
    if len(separator.encode()) != 1:
        raise InputError(
            f"{argument('delimiter', repr(separator))} must be one character, such as ',' or '\\t'"
        )
    cells = first.split(separator)
    if header is None:
        header = not all(_is_number(cell) for cell in cells)
    form = {"separator": separator, "has_header": header, "comment_prefix": comment}
    return {**form, "infer_schema": False, "glob": False}, len(cells)


@dataclass(frozen=True)
class Pieces:
    """A table of any size, read a piece at a time. Text stays text; Parquet keeps its numbers as they are."""

    table: pl.LazyFrame
    names: list[str]
    place: str

    @property
    def height(self) -> int:
        return int(self.table.select(pl.len()).collect().item())

    def read(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """The named columns, so many rows at a time, in the order of the file."""
        try:
            chosen = self.table.select(list(dict.fromkeys(columns)))
            yield from chosen.collect_batches(chunk_size=rows, maintain_order=True)
        except BROKEN as error:
            raise InputError(f"{self.place} is not a whole table ({_first(error)})") from None


def open_table(
    path: str | os.PathLike[str],
    scratch: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = True,
    encoding: str | None = None,
) -> Pieces:
    """What `read_table` would give, to be read in pieces. A gzipped table is unpacked into `scratch`."""
    file = plain = Path(path)
    with _readable(file) as size:
        head = _head(file)
    form: dict[str, Any] = {}
    if file.suffix.lower() not in PARQUET:
        if head[:2] == GZIP:
            with tempfile.NamedTemporaryFile(dir=scratch, delete=False) as out:
                _unzip(file, out, max(ALWAYS_FINE, MAX_RATIO * size))
            plain = Path(out.name)
        if encoding := encoding or _marked(_head(plain)):
            plain = _in_utf8(plain, file, encoding, scratch)
        form, _ = _form(_text(_head(plain), file, None, []), file, delimiter, header)
    try:
        table = pl.scan_csv(plain, **form) if form else pl.scan_parquet(plain, glob=False)
        schema = table.collect_schema()
    except BROKEN as error:
        raise InputError(f"{file} is not a whole table ({_first(error)})") from None
    _refuse_nested(schema, file)
    _refuse_narrow(list(schema), file, form.get("separator", ""))
    names = _stripped(list(schema)) if form else {name: name for name in schema}
    return Pieces(table.rename(names), list(names.values()), str(file))


def _head(file: Path) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(HEAD_BYTES)


def _refuse_narrow(columns: list[str], file: Path, separator: str) -> None:
    if len(columns) < 2:
        named = DELIMITERS.get(separator, repr(separator))
        said = f"{file} has one column only when split at each {named}"
        raise InputError(f"{said}; name the right one with {argument('delimiter')}")


def _refuse_nested(schema: pl.Schema, file: Path) -> None:
    nested = next((name for name, kind in schema.items() if kind.is_nested()), None)
    if nested is not None:
        raise InputError(f"{file}: column {nested!r} holds lists or records; give one column per number")


def _stripped(columns: list[str]) -> dict[str, str]:
    """New names of the columns: without white space around them, where they still differ then."""
    plain = {name: name.strip() for name in columns}
    return plain if len(set(plain.values())) == len(columns) else {name: name for name in columns}


def _read_parquet(file: Path, max_bytes: int) -> pl.DataFrame:
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
        _refuse_nested(columns, file)
        with _without_panics():
            frame = lazy.collect().select(pl.all().cast(pl.String))
    except InputError:
        raise
    except (*BROKEN, ValueError) as error:
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


def _text(raw: bytes, file: Path, encoding: str | None, notes: list[str]) -> bytes:
    """The text in UTF-8, with line feeds."""
    if encoding := encoding or _marked(raw):
        with _encoded(encoding, file):
            raw = raw.decode(encoding).removeprefix("\ufeff").encode()
        notes.append(f"{file} read as {encoding}")
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise InputError(f"{file} is {what}, not a table of text")
    if b"\x00" in raw:
        raise InputError(f"{file} holds zero bytes, so it is no text; save it as UTF-8 CSV")
    if len(raw) < HEAD_BYTES or not raw.isascii():  # a head may end within a letter
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as bad:
            if bad.reason != "unexpected end of data" or len(raw) != HEAD_BYTES:
                raise _not_utf8(raw, bad.start, file) from None
    if b"\r" in raw and b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")  # as old spreadsheets end lines
    return raw.removeprefix(b"\xef\xbb\xbf")


def _marked(raw: bytes) -> str | None:
    """The encoding that a text names at its beginning."""
    return next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)


@contextmanager
def _encoded(encoding: str, file: Path) -> Iterator[None]:
    try:
        yield
    except (LookupError, UnicodeError) as error:
        said = argument("encoding", encoding)
        raise InputError(f"{said}: {file} cannot be read so ({error}); try utf-8, cp1252 or utf-16") from None


def _not_utf8(raw: bytes, at: int, file: Path) -> InputError:
    line = raw.count(b"\n", 0, at) + 1
    shown = raw[max(0, at - 12) : at + 12].decode("cp1252", "replace").replace("\n", " ")
    return InputError(
        f"{file} line {line} is not UTF-8; if {shown!r} is what it should say, give "
        f"{argument('encoding', 'cp1252')}, else the encoding that it was saved in"
    )


def _in_utf8(plain: Path, file: Path, encoding: str, scratch: Path) -> Path:
    """A copy of a large file in UTF-8."""
    with (
        _encoded(encoding, file),
        open(plain, encoding=encoding, newline="") as text,
        tempfile.NamedTemporaryFile("w", dir=scratch, delete=False, encoding="utf-8", newline="") as out,
    ):
        while piece := text.read(HEAD_BYTES):
            out.write(piece)
    return Path(out.name)


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


def _where(raw: bytes, separator: str, error: BaseException) -> str:
    """Name the lines at fault: the library's message often lacks them."""
    mark, width, bad = separator.encode(), None, list[str]()
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip() or line.startswith(b"#") or b'"' in line:
            continue
        cells = line.count(mark) + 1
        width = width or cells
        if cells != width:
            bad.append(f"line {number} has {cells} cells")
    more = f" (and {len(bad) - 3} lines more)" if len(bad) > 3 else ""
    return f"{', '.join(bad[:3])}{more}, earlier ones {width}; mend them" if bad else _first(error)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
