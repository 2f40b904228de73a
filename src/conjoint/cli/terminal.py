"""Text for a terminal: whatever comes out of a user's file is shown, never obeyed."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..printable import clean


def table(rows: Sequence[Mapping[str, object]], right: Sequence[str] = ()) -> str:
    """Rows as aligned columns under their names; columns named in `right` hold numbers."""
    from rich.cells import cell_len  # wide letters take two cells

    if not rows:
        return ""
    names = list(rows[0])
    lines = [[clean(name) for name in names], *([clean(row[name]) for name in names] for row in rows)]
    widths = [max(cell_len(line[k]) for line in lines) for k in range(len(names))]
    out = []
    for line in lines:
        cells = []
        for name, text, width in zip(names, line, widths, strict=True):
            space = " " * (width - cell_len(text))
            cells.append(space + text if name in right else text + space)
        out.append("  ".join(cells).rstrip())
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([out[0], rule, *out[1:]])


def say(text: str) -> None:
    """A remark for the reader, on stderr, so that stdout holds results alone."""
    print(text, file=sys.stderr)


def print_json(document: Mapping[str, Any]) -> None:
    """One document, in ASCII, so that it survives any terminal and any pipe."""
    print(json.dumps(document, indent=2, allow_nan=False, default=_plain))


def _plain(value: object) -> object:
    """NumPy's scalars and paths."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def share(value: float) -> str:
    return f"{100 * value:.1f}%"
