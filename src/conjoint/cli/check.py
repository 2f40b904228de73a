"""conjoint check: what tables would be taken for, and all that is wrong with them."""

import argparse
from collections import Counter
from dataclasses import asdict

from ..data.preview import Preview, check, preview_of
from ..graph.graph import Graph
from ..text import clean, shorten
from .ingest import reader_options
from .output import answer, remark, table

MOST_COLUMNS, MOST_CLASSES = 16, 20  # that are shown one by one
WIDTH = 60


def work(options: argparse.Namespace) -> None:
    tell_preview(check(options.edges, options.nodes, **reader_options(options)), options)


def tell_preview(found: Preview, options: argparse.Namespace) -> None:
    answer(options, asdict(found), preview_text(found))


def remark_preview(graph: Graph, options: argparse.Namespace) -> None:
    """Before a training: all of it for the user's own tables, of a benchmark what was assumed."""
    if graph.benchmark:
        for note in graph.notes:
            remark(options, f"{clean(graph.name)}: {clean(note)}")
    else:
        remark(options, preview_text(preview_of(graph)))


def preview_text(found: Preview) -> str:
    size = f"{found.nodes} nodes, {found.edges} edges, {found.features} features"
    parts = [f"{clean(found.name)}: {size}", *(f"- {clean(note)}" for note in found.notes)]
    if found.columns:
        parts += ["", _columns(found)]
    if found.classes:
        parts += ["", _classes(found)]
    return "\n".join([*parts, ""])


def _columns(found: Preview) -> str:
    rows = [
        {"column": shorten(name, WIDTH), "taken for": shorten(kind, 2 * WIDTH)}
        for name, kind in found.columns.items()
    ]
    if len(rows) <= MOST_COLUMNS:
        return table(rows)
    kinds = Counter(kind.partition(",")[0].partition(":")[0] for kind in found.columns.values())
    told = ", ".join(f"{times} {kind}" for kind, times in kinds.most_common())
    plain = [row for row in rows if row["taken for"] != "number"][: MOST_COLUMNS - 1]
    return f"{table(plain)}\n{len(rows)} columns: {told}".strip("\n")


def _classes(found: Preview) -> str:
    often = sorted(found.classes.items(), key=lambda one: -one[1])
    rows = [{"class": shorten(name, WIDTH), "labels": times} for name, times in often[:MOST_CLASSES]]
    more = f"\nand {len(often) - MOST_CLASSES} classes more" if len(often) > MOST_CLASSES else ""
    rest = f"\n{found.unlabelled} nodes without a label" if found.unlabelled else ""
    return table(rows, right=("labels",)) + more + rest
