"""The results as Markdown pages, made from rows alone: an index, and one page for each table or figure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib

from ..evaluation.plots import picture
from .figures import figure_of
from .grid import experiment, grids
from .rows import Row
from .tables import DATASETS, Cell, Table, tables_of

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
            runs = str(len(chosen.own(rows)))
            words = (f"[{name}]({name}.md)", chosen.title, finding(tables_of(name, rows)), runs)
            lines.append(tuple(map(Cell, words)))
        table = Table(title, ("page", "what", "found", "runs"), tuple(lines))
        index.append(f"## {title}\n\n{markdown(table)}")
    return {"index.md": "\n".join(index).encode(), **files}


def _page(name: str, rows: Sequence[Row]) -> dict[str, bytes]:
    """The page of one experiment, and its figure if it has one."""
    chosen, files = experiment(name), {}
    about = f"`conjoint reproduce {name}` makes its runs. [What the columns mean, and all results](index.md)."
    tables = tables_of(name, rows)
    parts = [f"# {chosen.title}\n\n" + f"{finding(tables)}\n\n".lstrip() + f"{about}\n"]
    figure = figure_svg(name, rows)
    if figure is not None:
        files[f"{name}.svg"] = figure
        parts.append(f"![Picture of the tables below]({name}.svg)\n")
    for table in tables:
        heading = table.title.removeprefix(chosen.title).removeprefix(", ")
        heading = f"## {heading[:1].upper()}{heading[1:]}\n\n" if heading else ""
        parts.append(heading + markdown(table))
    return {f"{name}.md": "\n".join(parts).encode(), **files}


def finding(tables: Sequence[Table]) -> str:
    """In a few words: which model has the highest mean on each graph, and how the comparisons ended."""
    best: dict[str, list[str]] = {}
    verdicts: dict[str, Counter[str]] = {}
    words: list[str] = []
    for table in tables:
        graph, headers = table.title.rpartition(", ")[2], table.headers
        chosen = [k for k, header in enumerate(headers) if header == "measured"] or range(1, len(headers))
        if graph in DATASETS.values() and headers[0] == "model":
            means = [(row[k].value or 0.0, row[0].text) for row in table.rows for k in chosen]
            if max(means)[0]:
                best.setdefault(max(means)[1], []).append(graph)
        if "parameters" in headers:
            pairs = [(row[2].value, row[3].value) for row in table.rows if row[2].value and row[3].value]
            same = sum(published == counted for published, counted in pairs)
            words.append(f"Parameters equal the published ones in {same} of {len(pairs)} cases.")
        if (headers[-1].startswith("against") and "measured" in headers) or "control" in headers:
            told = Counter(row[-1].verdict for row in table.rows if row[-1].verdict)
            verdicts.setdefault(headers[-1], Counter()).update(told)
    leads = [f"{name} on {', '.join(where)}" for name, where in best.items()]
    words += [f"Highest: {'; '.join(leads)}."] if leads else []
    for header, told in verdicts.items():
        if told:
            ends = f"{told['better']} better, {told['worse']} worse, {told['same']} no different"
            words.append(f"{header.capitalize().replace('gat', 'GAT')}: {ends}.")
    return " ".join(words) or ("No runs yet." if not any(table.runs for table in tables) else "")


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
