"""The report, made from rows alone: one HTML file that needs nothing else.

Every word and number from outside is escaped, and nothing in it reaches the network.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluation.html import json_in_script, page, scrolled
from ..storage import read_text, storage_errors, write_atomically
from .extension import REMEDY, extension
from .grid import experiment, experiment_names
from .markdown import figure_svg
from .rows import Row
from .tables import Cell, Table, tables_of

PAGE = Path(__file__).with_name("page")
PORTRAIT_LIMIT = 64 * 1024**2  # bytes
PORTRAIT_WORDS = ("classes", "ids")
PORTRAIT_NUMBERS = ("labels", "predicted", "part", "points", "heard", "speakers", "structural", "layers")


def build_report(rows: Sequence[Row], portrait: Mapping[str, Any] | None = None) -> str:
    """The page as text. `portrait` (see `kept_portrait`) feeds the attention explorer."""
    links = [(name, name) for name in experiment_names()] + [("explorer", "attention explorer")]
    return page(
        PAGE / "page.html",
        [PAGE / "sort.js", PAGE / "explorer.js"],
        nav=" ".join(f'<a href="#{escape(name)}">{escape(text)}</a>' for name, text in links),
        count=f"Made from {len(rows)} training runs.",
        sections="\n".join(_section(name, rows) for name in experiment_names()),
        portrait=portrait_words(portrait),
        data=json_in_script(portrait),
        made=escape(_made_with(rows)),
    )


def _section(name: str, rows: Sequence[Row]) -> str:
    title = escape(experiment(name).title)
    parts = [f'<section id="{escape(name)}">', f"<h2>{title}</h2>"]
    figure = figure_svg(name, rows)
    if figure is not None:
        data = base64.b64encode(figure).decode()
        alt = f"Picture of the tables below: {title}"
        parts.append(f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}"></figure>')
    return "\n".join([*parts, *map(html_table, tables_of(name, rows)), "</section>"])


def html_table(table: Table) -> str:
    def html_cell(column: int, cell: Cell) -> str:
        marks = f' class="{escape(cell.verdict)}"' if cell.verdict else ""
        if cell.value is not None:
            marks += f' data-value="{cell.value!r}"'
        tag, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
        return f"<{tag}{scope}{marks}>{escape(cell.text)}</{tag}>"

    names = (f'<button type="button">{escape(name)}</button>' for name in table.headers)
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(f"<tr>{''.join(html_cell(*cell) for cell in enumerate(row))}</tr>\n" for row in table.rows)
    rows = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"
    return scrolled(table.title, f'<table class="sortable">{rows}</table>')


def portrait_words(portrait: Mapping[str, Any] | None) -> str:
    if portrait is None:
        return "No network was trained for it."
    accuracy = f"{100 * portrait['test_accuracy']:.1f}%"
    return escape(f"The network is {portrait['model']}, {accuracy} right on the test papers.")


def _made_with(rows: Sequence[Row]) -> str:
    def versions(name: str) -> str:
        return ", ".join(sorted({str(row["made_with"].get(name)) for row in rows})) or "-"

    return f"Runs made with conjoint {versions('conjoint')} and torch {versions('torch')}."


def kept_portrait(folder: Path, say: Callable[[str], None]) -> dict[str, Any] | None:
    """The explorer's network that is kept with the rows, trained first where a checkout can do it."""
    path, train = folder / "report" / "cora.json", extension().portrait
    if not path.exists():
        if train is None:
            say(f"no attention explorer: {path} is not there, and the package cannot make it; {REMEDY}")
            return None
        say("training a network for the attention explorer")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(train(), separators=(",", ":"), allow_nan=False).encode() + b"\n")
    try:
        found = json.loads(read_text(path, PORTRAIT_LIMIT, "the explorer's network"))
        json.dumps(found, allow_nan=False)  # the page is JSON, which has no NaN
        sound = _is_portrait(found)
    except (ValueError, RecursionError):
        sound = False
    if not sound:
        raise InputError(f"{path}: not a portrait of a network; delete it to have it made again")
    return found


def _is_portrait(found: Any) -> bool:
    """Whether every part is there and of its kind; what the page's script does with them is its own care."""
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(name), list) for name in (*PORTRAIT_WORDS, *PORTRAIT_NUMBERS))
        and all(isinstance(word, str) for name in PORTRAIT_WORDS for word in found[name])
        and isinstance(found.get("model"), str)
        and isinstance(found.get("test_accuracy"), float)
    )
