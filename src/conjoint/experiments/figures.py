"""The paper's figures, and a picture of each table, from rows alone."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.lines import Line2D

from ..evaluation.plots import COLOURS, GREY, look, new_figure, tidy
from .grid import Experiment, experiment
from .rows import Row
from .stats import Result, results_of
from .tables import milliseconds, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED, MEASURED, RELEASE = COLOURS[3], COLOURS[0], COLOURS[1]


def figure_of(name: str, rows: Sequence[Row]) -> "Figure | None":
    """The figure of one experiment; None where it has none, or no run that could be shown."""
    chosen = experiment(name)
    if "figure" not in chosen.about:
        return None
    done = [row for row in chosen.own(rows) if "failed" not in row]
    datasets = [dataset for dataset in chosen.datasets if any(row["dataset"] == dataset for row in done)]
    return FIGURES[chosen.about["figure"]](chosen, done, datasets) if datasets else None


def accuracy_figure(chosen: Experiment, rows: Sequence[Row], datasets: list[str]) -> "Figure":
    """Each model's published, measured and release-rule accuracy; the bar is the 95% interval of the mean."""
    results, places = results_of(rows, chosen.metric), range(len(chosen.models))
    figure = new_figure(max(6.0, 2.9 * len(datasets) + 1.2), 0.9 + 0.24 * len(places))
    panels = np.atleast_1d(figure.subplots(1, len(datasets), sharey=True))
    for axes, dataset in zip(panels, datasets, strict=True):
        tidy(axes, title_of(dataset), "accuracy (%)")
        axes.grid(axis="x", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        for place, model in zip(places, chosen.models, strict=True):
            paper = chosen.published(model, dataset)
            if paper is not None:
                axes.plot(paper[0], place, "|", color=PUBLISHED, ms=9, mew=2)
            _measured(axes, place, results.get((model, dataset), Result()))
        axes.set_yticks(places, chosen.models)
    panels[0].invert_yaxis()  # the first model on top
    marks = [
        Line2D([], [], color=MEASURED, marker="o", ms=4, lw=1.4, label="measured, 95% interval"),
        Line2D([], [], color=RELEASE, marker="o", mfc="none", lw=0, label="same runs, release rule"),
    ]
    if "published" in chosen.about:
        marks.append(Line2D([], [], color=PUBLISHED, marker="|", ms=9, mew=2, lw=0, label="published"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _measured(axes: "Axes", place: int, result: Result) -> None:
    if result.release is not None:
        axes.plot(100 * result.release.mean, place, "o", mfc="none", mec=RELEASE, ms=5)
    if result.estimate is not None:
        mean, half = 100 * result.estimate.mean, 100 * (result.estimate.ci95 or 0.0)
        axes.errorbar(mean, place, xerr=half, fmt="o", color=MEASURED, ms=4, lw=1.4)


def level_figure(chosen: Experiment, rows: Sequence[Row], datasets: list[str]) -> "Figure":
    """Accuracy along what the experiment varies, a panel for each graph; the bar is the 95% interval."""
    axis = chosen.axis
    assert axis is not None
    figure = new_figure(max(6.0, 4.2 * len(datasets)), 3.4 if len(chosen.models) < 8 else 4.2)
    panels = np.atleast_1d(figure.subplots(1, len(datasets)))
    for axes, dataset in zip(panels, datasets, strict=True):
        tidy(axes, title_of(dataset), axis.title, "test accuracy (%)")
        here = [row for row in rows if row["dataset"] == dataset]
        results = results_of(here, chosen.metric, column=lambda row: str(axis.level(row)))
        for k, model in enumerate(chosen.models):
            levels = sorted(float(level) for name, level in results if name == model)
            found = {level: one for level in levels if (one := results[model, str(level)].estimate)}
            if found:
                means = [100 * one.mean for one in found.values()]
                bars = [100 * (one.ci95 or 0.0) for one in found.values()]
                colour, marker = look(k)
                style: dict[str, Any] = {"color": colour, "marker": marker, "ms": 3.5, "lw": 1.2}
                axes.errorbar(list(found), means, yerr=bars, **style, label=model)
        if axis.log:
            axes.set_xscale("log")
    _names_below(figure, panels)
    return figure


def size_figure(chosen: Experiment, rows: Sequence[Row], datasets: list[str]) -> "Figure":
    """What CAT costs beside GAT: memory that the run added to its process, and time of an epoch."""
    measures: dict[str, Callable[[Row], float]] = {
        "peak memory of training (MiB)": lambda row: row["grown_mib"],
        "time of an epoch (ms)": milliseconds,
    }
    figure = new_figure(9.0, 3.4)
    panels = figure.subplots(1, 2)
    for axes, (title, measure) in zip(panels, measures.items(), strict=True):
        tidy(axes, title)
        for k, model in enumerate(chosen.models):
            done = {row["dataset"]: measure(row) for row in rows if row["model"] == model}
            places = [datasets.index(d) + (k - len(chosen.models) / 2) * 0.15 + 0.075 for d in done]
            axes.bar(places, list(done.values()), width=0.14, color=(GREY, *COLOURS)[k], label=model)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.set_xticks(range(len(datasets)), [title_of(dataset) for dataset in datasets])
    _names_below(figure, panels)
    return figure


FIGURES: dict[str, Callable[[Experiment, Sequence[Row], list[str]], "Figure"]] = {
    "accuracy": accuracy_figure,
    "levels": level_figure,
    "sizes": size_figure,
}


def _names_below(figure: "Figure", panels: npt.NDArray[Any]) -> None:
    """One legend for all panels: a model that one of them lacks may be in another."""
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
