"""Put the page together. Every word and number from outside is escaped; nothing in it reaches the network."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from ...evaluation.plots.style import picture
from ..figures import accuracy_figure, level_figure, size_figure
from ..grid import experiment, experiment_names
from ..rows import Row
from ..tables import Entry, Table, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Sequence[Row]], "Figure | None"]] = {
    **{name: partial(accuracy_figure, name) for name in ("table1", "table2", "random-splits", "released")},
    "ablation": partial(accuracy_figure, "ablation"),
    **{
        name: partial(level_figure, name)
        for name in ("lambda", "robust-edges", "robust-deletion", "robust-features", "few-labels")
    },
    "table5": size_figure,
}


def build_report(rows: Sequence[Row], portrait: Mapping[str, Any] | None = None) -> str:
    """The page as text. `portrait` (see `portrait.make_portrait`) feeds the attention explorer."""
    style = _file("style.css")
    script = "(() => {\n" + _file("sort.js") + "})();\n(() => {\n" + _file("explorer.js") + "})();\n"
    links = [(name, name) for name in experiment_names()] + [("explorer", "attention explorer")]
    return Template(_file("page.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        nav=" ".join(f'<a href="#{escape(name)}">{escape(text)}</a>' for name, text in links),
        count=f"Made from {len(rows)} training runs.",
        sections="\n".join(_section(name, rows) for name in experiment_names()),
        portrait=_portrait_words(portrait),
        data=_json_in_script(portrait),
        made=escape(_made_with(rows)),
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Only this very style and script, pictures from within, and no connection to anywhere."""
    return (
        f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _section(name: str, rows: Sequence[Row]) -> str:
    parts = [f'<section id="{escape(name)}">', f"<h2>{escape(experiment(name).title)}</h2>"]
    figure = FIGURES[name](rows) if name in FIGURES else None
    if figure is not None:
        data = base64.b64encode(_svg(figure)).decode()
        alt = f"Picture of the tables below: {experiment(name).title}"
        parts.append(f'<figure><img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}"></figure>')
    parts += [_table(table) for table in tables_of(name, rows)]
    return "\n".join([*parts, "</section>"])


def _svg(figure: "Figure") -> bytes:
    """Text stays text, and names inside the file do not depend on chance."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "conjoint"}):
        return picture(figure, "svg")


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in table.headers
    )
    body = "".join(f"<tr>{''.join(_cells(row))}</tr>\n" for row in table.rows)
    title = escape(table.title)
    return (
        f'<h3>{title}</h3>\n<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f'<table class="sortable"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'
    )


def _cells(row: Sequence[Entry]) -> Iterator[str]:
    for column, entry in enumerate(row):
        marks = f' class="{escape(entry.says)}"' if entry.says else ""
        if entry.value is not None:
            marks += f' data-value="{entry.value!r}"'
        tag, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
        yield f"<{tag}{scope}{marks}>{escape(entry.text)}</{tag}>"


def _portrait_words(portrait: Mapping[str, Any] | None) -> str:
    if portrait is None:
        return "No network was trained for it."
    accuracy = f"{100 * portrait['test_accuracy']:.1f}%"
    return escape(f"The network is {portrait['model']}, {accuracy} right on the test papers.")


def _json_in_script(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _made_with(rows: Sequence[Row]) -> str:
    versions = sorted({str(row["made_with"].get("conjoint")) for row in rows})
    torch = sorted({str(row["made_with"].get("torch")) for row in rows})
    return f"Runs made with conjoint {', '.join(versions) or '-'} and torch {', '.join(torch) or '-'}."
