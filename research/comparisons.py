"""Tables along an axis, with differences to models of reference and to another level, and with times."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from conjoint.experiments.grid import Axis, Experiment
from conjoint.experiments.rows import Row
from conjoint.experiments.stats import Result, Results, results_of
from conjoint.experiments.tables import (
    NONE,
    Cell,
    Table,
    level_lines,
    level_tables,
    number_cell,
    paired_cell,
)


def comparison_tables(chosen: Experiment, rows: Sequence[Row]) -> Iterator[Table]:
    """Per graph with runs: accuracies at each level, differences to references and base level, and times."""
    axis = chosen.axis
    assert axis is not None
    for dataset in chosen.datasets:
        here = [row for row in rows if row["dataset"] == dataset]
        for plain in level_tables(chosen, here):
            yield plain
            for reference in chosen.about.get("references", ()):
                others = [model for model in chosen.models if model != reference]
                results = results_of(
                    here, chosen.metric, column=axis.column, against=others, baseline=reference
                )
                lines = level_lines(others, plain.headers, results, _paired)
                yield Table(f"{plain.title}, against {reference}", plain.headers, lines, len(here))
            if axis.base is not None:
                base = axis.header.format(level=axis.base)
                rest = tuple(header for header in plain.headers if header != base)
                results = _against_base(chosen, axis, here, base, rest[1:])
                lines = level_lines(chosen.models, rest, results, _paired)
                yield Table(f"{plain.title}, against itself at {base}", rest, lines, len(here))
            if chosen.about.get("timed", False):
                yield _times(chosen, axis, here, plain)


def _paired(result: Result) -> Cell:
    return paired_cell(result.paired)


def _against_base(
    chosen: Experiment, axis: Axis, rows: Sequence[Row], base: str, others: Sequence[str]
) -> Results:
    """Each model's levels against its base: what `results_of` does between models, with the two exchanged."""
    exchanged = [row | {"model": axis.column(row), "line": row["model"]} for row in rows]
    results = results_of(
        exchanged, chosen.metric, column=lambda row: row["line"], against=others, baseline=base
    )
    return {(model, header): result for (header, model), result in results.items()}


def _times(chosen: Experiment, axis: Axis, rows: Sequence[Row], plain: Table) -> Table:
    """Seconds of a training with one thread; a median, as some of them shared their core."""
    taken = defaultdict[tuple[str, str], list[float]](list)
    for row in rows:
        if "failed" not in row:
            taken[row["model"], axis.column(row)].append(row["fit_seconds"])
    medians = {place: number_cell(median(seconds), "{:.1f}") for place, seconds in taken.items()}
    lines = tuple(
        (Cell(model), *(medians.get((model, header), NONE) for header in plain.headers[1:]))
        for model in chosen.models
    )
    return Table(f"{plain.title}, seconds of a training (median)", plain.headers, lines, len(rows))
