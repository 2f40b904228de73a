"""The paper's figures, and a picture of each table, from rows alone."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..evaluation.plots.style import COLOURS, GREY, look, new_figure, tidy
from .grid import Experiment, experiment, published
from .rows import Row, select
from .stats import Cells, summarise
from .tables import DATASETS, datasets_in, milliseconds, models_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED, MEASURED, RELEASE = COLOURS[3], COLOURS[0], COLOURS[1]


def accuracy_figure(name: str, rows: Sequence[Row]) -> "Figure | None":
    """Each model's published, measured and release-rule accuracy; the bar is the 95% interval of the mean."""
    chosen, cells = _cells(name, rows)
    datasets = [dataset for dataset in datasets_in(chosen) if _any(cells, dataset)]
    if not datasets:
        return None
    models = models_in(chosen)
    figure = new_figure(max(6.0, 2.9 * len(datasets) + 1.2), 0.9 + 0.24 * len(models))
    panels = np.atleast_1d(figure.subplots(1, len(datasets), sharey=True))
    places = range(len(models))
    for axes, dataset in zip(panels, datasets, strict=True):
        tidy(axes, DATASETS[dataset], "accuracy (%)")
        axes.grid(axis="x", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        for place, model in zip(places, models, strict=True):
            _row_of_marks(axes, place, chosen, cells, model, dataset)
        axes.set_yticks(places, models)
    panels[0].invert_yaxis()  # the first model on top
    _legend(figure, chosen.published is not None)
    return figure


def _row_of_marks(
    axes: "Axes", place: int, chosen: Experiment, cells: Cells, model: str, dataset: str
) -> None:
    paper = None if chosen.published is None else published(chosen.published, model, dataset)
    if paper is not None:
        axes.plot(paper[0], place, "|", color=PUBLISHED, ms=9, mew=2)
    cell = cells.get((model, dataset))
    if cell is None or cell.spread is None:
        return
    if cell.release is not None:
        axes.plot(100 * cell.release.mean, place, "o", mfc="none", mec=RELEASE, ms=5)
    half = 100 * (cell.spread.ci95 or 0.0)
    axes.errorbar(100 * cell.spread.mean, place, xerr=half, fmt="o", color=MEASURED, ms=4, lw=1.4)


def _legend(figure: "Figure", with_paper: bool) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=MEASURED, marker="o", ms=4, lw=1.4, label="measured, 95% interval"),
        Line2D([], [], color=RELEASE, marker="o", mfc="none", lw=0, label="same runs, release rule"),
    ]
    if with_paper:
        marks.append(Line2D([], [], color=PUBLISHED, marker="|", ms=9, mew=2, lw=0, label="published"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8, frameon=False)


def level_figure(name: str, rows: Sequence[Row]) -> "Figure | None":
    """Accuracy along what the experiment varies, a panel for each graph; the bar is the 95% interval."""
    chosen = experiment(name)
    axis = chosen.axis
    assert axis is not None
    mine = select(rows, (spec.key for spec in chosen.specs))
    datasets = [d for d in datasets_in(chosen) if any(row["dataset"] == d for row in mine)]
    if not datasets:
        return None
    figure = new_figure(max(6.0, 4.2 * len(datasets)), 3.4 if len(models_in(chosen)) < 8 else 4.2)
    panels = np.atleast_1d(figure.subplots(1, len(datasets)))
    for axes, dataset in zip(panels, datasets, strict=True):
        tidy(axes, DATASETS[dataset], axis.title, "test accuracy (%)")
        here = [row for row in mine if row["dataset"] == dataset]
        cells = summarise(here, chosen.metric, column=lambda row: str(axis.level(row)))
        for k, model in enumerate(models_in(chosen)):
            known = sorted(
                (float(level), cell.spread)
                for (m, level), cell in cells.items()
                if m == model and cell.spread
            )
            if known:
                levels, spreads = zip(*known, strict=True)
                colour, marker = look(k)
                means = [100 * spread.mean for spread in spreads]
                bars = [100 * (spread.ci95 or 0.0) for spread in spreads]
                axes.errorbar(
                    levels, means, yerr=bars, color=colour, marker=marker, ms=3.5, lw=1.2, label=model
                )
        if axis.log:
            axes.set_xscale("log")
    _names_below(figure, panels)
    return figure


def size_figure(rows: Sequence[Row]) -> "Figure | None":
    """What CAT costs beside GAT: memory that the run added to its process, and time of an epoch."""
    chosen = experiment("table5")
    mine = [row for row in select(rows, (s.key for s in chosen.specs)) if "failed" not in row]
    datasets = [d for d in datasets_in(chosen) if any(row["dataset"] == d for row in mine)]
    if not datasets:
        return None
    figure = new_figure(9.0, 3.4)
    panels = figure.subplots(1, 2)
    measures: tuple[tuple[str, Callable[[Row], float]], ...] = (
        ("peak memory of training (MiB)", lambda row: row["grown_mib"]),
        ("time of an epoch (ms)", milliseconds),
    )
    models = models_in(chosen)
    for axes, (title, measure) in zip(panels, measures, strict=True):
        tidy(axes, title)
        for k, model in enumerate(models):
            done = {row["dataset"]: measure(row) for row in mine if row["model"] == model}
            places = [datasets.index(d) + (k - len(models) / 2) * 0.15 + 0.075 for d in done]
            colour = GREY if model == "gat" else COLOURS[k - 1]
            axes.bar(places, list(done.values()), width=0.14, color=colour, label=model)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.set_xticks(range(len(datasets)), [DATASETS[d] for d in datasets])
    _names_below(figure, panels)
    return figure


def _names_below(figure: "Figure", panels: npt.NDArray[Any]) -> None:
    """One legend for all panels: a model that one of them lacks may be in another."""
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(
        list(named.values()), list(named), loc="outside lower center", ncols=5, fontsize=8, frameon=False
    )


def _cells(name: str, rows: Sequence[Row]) -> tuple[Experiment, Cells]:
    chosen = experiment(name)
    return chosen, summarise(select(rows, (spec.key for spec in chosen.specs)), chosen.metric)


def _any(cells: Cells, dataset: str) -> bool:
    return any(where == dataset and cell.spread is not None for (_, where), cell in cells.items())
