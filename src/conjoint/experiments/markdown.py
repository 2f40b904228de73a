"""The results as Markdown pages, made from rows alone: an index, and one page for each table or figure."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib

from ..evaluation.plots import picture
from .figures import figure_of
from .grid import experiment, grids
from .rows import Row
from .tables import Cell, Table, tables_of, title_of

HEAD = Path(__file__).with_name("page") / "head.md"


def markdown_pages(rows: Sequence[Row]) -> dict[str, bytes]:
    """What `docs/results` holds, by file name: nothing there is typed by hand."""
    index = [HEAD.read_text(encoding="utf-8")]
    files: dict[str, bytes] = {}
    for title, names in grids():
        lines = []
        for name in names:
            files |= _page(name, rows)
            chosen = experiment(name)
            graphs = ", ".join(map(title_of, chosen.datasets))
            words = (f"[{name}]({name}.md)", chosen.title, graphs, str(len(chosen.own(rows))))
            lines.append(tuple(map(Cell, words)))
        table = Table(title, ("page", "what", "graphs", "runs"), tuple(lines))
        index.append(f"## {title}\n\n{markdown(table)}")
    return {"index.md": "\n".join(index).encode(), **files}


def _page(name: str, rows: Sequence[Row]) -> dict[str, bytes]:
    """The page of one experiment, and its figure if it has one."""
    chosen, files = experiment(name), {}
    about = f"`conjoint reproduce {name}` makes its runs. [What the columns mean, and all results](index.md)."
    parts = [f"# {chosen.title}\n\n{about}\n"]
    figure = figure_svg(name, rows)
    if figure is not None:
        files[f"{name}.svg"] = figure
        parts.append(f"![Picture of the tables below]({name}.svg)\n")
    for table in tables_of(name, rows):
        heading = table.title.removeprefix(chosen.title).removeprefix(", ")
        heading = f"## {heading[:1].upper()}{heading[1:]}\n\n" if heading else ""
        parts.append(heading + markdown(table))
    return {f"{name}.md": "\n".join(parts).encode(), **files}


def figure_svg(name: str, rows: Sequence[Row]) -> bytes | None:
    """The experiment's figure: text stays text, and names inside the file do not depend on chance."""
    figure = figure_of(name, rows)
    if figure is None:
        return None
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "conjoint"}):
        return picture(figure, "svg")


def markdown(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    def text(cell: Cell) -> str:
        plain = cell.text.replace("|", "\\|")
        return f"**{plain}**" if cell.verdict in ("better", "worse") else plain

    rule = line("---" for _ in table.headers)
    return line(table.headers) + rule + "".join(line(map(text, row)) for row in table.rows)
