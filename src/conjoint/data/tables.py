"""Tables out: whole or not at all, and safe to open in a spreadsheet."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conjoint.errors import InputError

if TYPE_CHECKING:
    import polars as pl

# A cell that starts so is run as a formula by spreadsheets, some of which read wide letters as plain ones.
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its name only when the block ends without an error."""
    target = Path(path)
    try:
        # The ending is the one that a resumed run sweeps away, should this process be killed.
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".tmp")
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); does its folder exist?") from None
    try:
        yield Path(part)
        os.fsync(handle)  # the name must not reach the disk before the content
        # mkstemp makes files that only the owner can read; a result should be as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, target)
    finally:
        os.close(handle)
        Path(part).unlink(missing_ok=True)


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any] | Any]) -> None:
    """Columns to CSV, TSV or Parquet by the file's ending.

    In CSV and TSV a text cell that a spreadsheet would run as a formula gets a leading apostrophe; numbers
    and Parquet are left alone.
    """
    import polars as pl

    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise InputError(f"{path} must end in .csv, .tsv or .parquet")
    frame = pl.DataFrame(dict(columns))
    with written_whole(path) as part:
        if kind == ".parquet":
            frame.write_parquet(part)
        else:
            defused(frame).write_csv(part, separator="\t" if kind == ".tsv" else ",")


def defused(frame: "pl.DataFrame") -> "pl.DataFrame":
    """The same table with text cells and column names that no spreadsheet takes for a formula."""
    import polars as pl

    text = [name for name, kind in frame.schema.items() if kind == pl.String]
    cells = [
        pl.when(pl.col(name).str.contains(FORMULA))
        .then("'" + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in text
    ]
    names = {name: "'" + name if re.match(FORMULA, name) else name for name in frame.columns}
    return frame.with_columns(cells).rename(names)
