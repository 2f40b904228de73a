"""The tables as a Markdown page: docs/results.md is this, and nothing typed by hand."""

from collections.abc import Iterable, Sequence

from .grid import experiment_names
from .rows import Row
from .tables import Entry, Table, tables_of

HEAD = """\
# Results

Made from the rows in `results/` by `conjoint report --markdown docs/results.md`; do not edit.

- *published*: the paper's mean and deviation.
- *measured*: mean and sample deviation under validation-only selection; the interval is Student's t.
- *release rule*: what the authors' selection (best test accuracy where validation loss improved) would have
  reported for the same training runs, and *gap* how much that adds. Test nodes took part in choosing, so
  these numbers estimate nothing.
- *against GAT*: mean difference on the same splits and seeds with its 95% interval, and the p-value of the
  paired t-test after Holm's correction over all comparisons of that experiment.
- "-": not run.
"""


def page(rows: Sequence[Row]) -> str:
    """Every table of every experiment."""
    parts = [HEAD]
    for name in experiment_names():
        parts.append(f"## {name}\n")
        parts += [f"### {table.title}\n\n{markdown(table)}" for table in tables_of(name, rows)]
    return "\n".join(parts)


def markdown(table: Table) -> str:
    lines = [_line(table.headers), _line("---" for _ in table.headers)]
    lines += [_line(_entry(entry) for entry in row) for row in table.rows]
    return "".join(lines)


def _entry(entry: Entry) -> str:
    text = entry.text.replace("|", "\\|")
    return f"**{text}**" if entry.says in ("better", "worse") else text


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"
