"""Seconds against test accuracy, the ensemble beside its members and peers, as a picture made from rows.

python -m research.time_to_accuracy          docs/img/time-to-accuracy.svg, from results/any-graph/rows.jsonl

A member's seconds are those of all of its trainings in the search; a peer's those of its three settings (rows
made before these were kept have none, and show no peer). Means over the splits.
"""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from conjoint.evaluation.plots import new_figure, tidy, write_picture

from .any_graph import LINES, SHARES, read_rows

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "img" / "time-to-accuracy.svg"
COLUMNS = 4
Points = dict[str, tuple[float, float]]  # by line: seconds, accuracy in %
KINDS = {  # what a line is drawn as: colour, marker, size
    "conjoint train": ("C3", "*", 90.0),
    "conjoint attention alone": ("C0", "o", 18.0),
    "other members alone": ("0.6", "o", 18.0),
    "tuned GCN, GraphSAGE, GAT": ("C2", "s", 18.0),
}


def kind_of(line: str) -> str:
    if line == "ensemble":
        return "conjoint train"
    if line.startswith(("tuned", "classic")):
        return "tuned GCN, GraphSAGE, GAT"
    return "conjoint attention alone" if "CAT" in line else "other members alone"


def points(rows: list[dict[str, Any]]) -> Points:
    """Of the rows of one graph: the lines that all of them have, with their seconds."""
    timed: list[Mapping[str, float]] = [
        {"ensemble": row["seconds"], **row["member_seconds"], **row.get("peer_seconds", {})} for row in rows
    ]
    shared = set.intersection(*(set(one) & set(row["test"]) for one, row in zip(timed, rows, strict=True)))
    return {
        line: (
            fmean(one[line] for one in timed),
            100 * fmean(row["test"][line]["accuracy"] for row in rows),
        )
        for line in sorted(shared - set(LINES[1:]))
    }


def figure_of(rows: list[dict[str, Any]]) -> Figure:
    shares = [row for row in rows if row["setting"] == SHARES]
    graphs = list(dict.fromkeys(row["graph"] for row in shares))
    down = -(-len(graphs) // COLUMNS)
    figure = new_figure(11.0, 2.3 * down + 0.5)
    panels = figure.subplots(down, COLUMNS, squeeze=False).ravel()
    for axes, graph in zip(panels, graphs, strict=False):
        for line, (seconds, accuracy) in points([row for row in shares if row["graph"] == graph]).items():
            colour, marker, size = KINDS[kind_of(line)]
            axes.scatter(max(seconds, 0.01), accuracy, s=size, c=colour, marker=marker, label=kind_of(line))
        axes.set_xscale("log")
        tidy(axes, graph, "seconds", "test accuracy, %")
    for axes in panels[len(graphs) :]:
        axes.axis("off")
    named = {
        text: mark for axes in panels for mark, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    kinds = [kind for kind in KINDS if kind in named]
    figure.legend(
        [named[kind] for kind in kinds], kinds, loc="outside lower center", ncols=len(kinds), fontsize=8
    )
    return figure


if __name__ == "__main__":
    write_picture(str(PICTURE), figure_of(read_rows()))
