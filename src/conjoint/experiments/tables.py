"""Tables as data, made from rows alone: the same tables are written as Markdown and as HTML."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..training.seeds import Estimate
from .extension import extension
from .grid import Experiment, experiment, models_in
from .rows import Row
from .stats import Paired, Result, Results, results_of

# The paper's own names, for readers who have it at hand.
DATASETS = {
    "cora": "Cora",
    "citeseer": "Cite",
    "pubmed": "Pubmed",
    "coauthor-cs": "CoauthorCS",
    "ogbn-arxiv": "OGB-Arxiv",
}


def title_of(dataset: str) -> str:
    return DATASETS.get(dataset, dataset)


@dataclass(frozen=True)
class Cell:
    """Its text, the number to sort by, and the verdict of a comparison ("better", "worse", "same")."""

    text: str
    value: float | None = None
    verdict: str = ""


NONE = Cell("-")
Line = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    title: str
    headers: tuple[str, ...]
    rows: tuple[Line, ...]
    runs: int = 0  # how many runs it is made of


def tables_of(name: str, rows: Sequence[Row]) -> list[Table]:
    """The tables of one experiment, from those of its runs that are done."""
    chosen = experiment(name)
    make = {**TABLES, **extension().tables}[chosen.about.get("tables", "accuracy")]
    return list(make(chosen, chosen.own(rows)))


def accuracy_tables(chosen: Experiment, rows: Sequence[Row]) -> Iterator[Table]:
    """One table per graph: published, measured, what the authors' rule would report, against GAT."""
    results = results_of(rows, chosen.metric, against=models_in(chosen.about.get("compare", [])))
    headers = ("model", "published", "measured", "95% interval", "runs", "release rule", "gap", "against GAT")
    for dataset in chosen.datasets:
        lines = []
        for model in chosen.models:
            paper = chosen.published(model, dataset)
            printed = NONE if paper is None else Cell(f"{paper[0]:.2f} ± {paper[1]:.2f}", paper[0])
            lines.append((Cell(model), printed, *_measured(results.get((model, dataset), Result()))))
        runs = sum(row["dataset"] == dataset for row in rows)
        yield Table(f"{chosen.title}, {title_of(dataset)}", headers, tuple(lines), runs)
    if "controls" in chosen.about:
        yield _against_controls(chosen, rows)
    if chosen.about.get("by_release_rule", False):
        yield _by_release_rule(chosen, rows)


def _measured(result: Result) -> Line:
    found, gap = result.estimate, result.gap
    count = 0 if found is None else found.count
    runs = f"{count} ({result.failed} failed)" if result.failed else str(count)
    interval = NONE
    if found is not None and found.ci95 is not None:
        low, high = found.mean - found.ci95, found.mean + found.ci95
        interval = Cell(f"{100 * low:.2f} to {100 * high:.2f}", found.ci95)
    return (
        mean_cell(found),
        interval,
        Cell(runs, float(count)),
        mean_cell(result.release),
        NONE if gap is None else Cell(f"{100 * gap.mean:+.2f}", gap.mean),
        paired_cell(result.paired),
    )


def _against_controls(chosen: Experiment, rows: Sequence[Row]) -> Table:
    """Does the structure add anything to the self term and the mixing? Each CAT against its own control."""
    lines = []
    for control, models in chosen.about["controls"].items():
        results = results_of(rows, chosen.metric, against=models, baseline=control)
        for dataset in chosen.datasets:
            for model in models:
                against = paired_cell(results.get((model, dataset), Result()).paired)
                lines.append((Cell(title_of(dataset)), Cell(model), Cell(control), against))
    title = f"{chosen.title}, with structure against the same network with every edge scored 0"
    return Table(title, ("graph", "model", "control", "against control"), tuple(lines), len(rows))


def _by_release_rule(chosen: Experiment, rows: Sequence[Row]) -> Table:
    """The same comparison with what the authors' rule would have reported, which chose by the test nodes."""
    seen = [row | row["release"] for row in rows if "reading" in row.get("release", {})]
    results = results_of(seen, chosen.metric, against=models_in(chosen.about.get("compare", [])))
    lines = []
    for dataset in chosen.datasets:
        for model in chosen.models:
            found = results.get((model, dataset), Result())
            both = (mean_cell(found.estimate), paired_cell(found.paired))
            lines.append((Cell(title_of(dataset)), Cell(model), *both))
    title = f"{chosen.title}, by the release's rule (test nodes chose the epoch)"
    return Table(title, ("graph", "model", "release rule", "against GAT"), tuple(lines), len(seen))


def level_tables(chosen: Experiment, rows: Sequence[Row]) -> Iterator[Table]:
    """One table per graph that has runs, with one column per level of the axis."""
    axis = chosen.axis
    assert axis is not None
    for dataset in chosen.datasets:
        here = [row for row in rows if row["dataset"] == dataset]
        if not here:
            continue
        specs = sorted((vars(spec) for spec in chosen.specs if spec.dataset == dataset), key=axis.level)
        headers = ("model", *dict.fromkeys(map(axis.column, specs)))
        results = results_of(here, chosen.metric, column=axis.column)
        lines = level_lines(chosen.models, headers, results, lambda result: mean_cell(result.estimate))
        yield Table(f"{chosen.title}, {title_of(dataset)}", headers, lines, len(here))


def level_lines(
    models: Sequence[str], headers: Sequence[str], results: Results, cell: Callable[[Result], Cell]
) -> tuple[Line, ...]:
    """A line for each model, with `cell` of its result in each column after the first."""
    return tuple(
        (Cell(model), *(cell(results.get((model, header), Result())) for header in headers[1:]))
        for model in models
    )


FORMS = ("{:.0f}", "{}", "{:.1f} GB", "{:.0f} MiB", "{:.1f} ms")  # of the numbers of `size_table`


def size_table(chosen: Experiment, rows: Sequence[Row]) -> Iterator[Table]:
    """Parameters and memory beside the paper's, and the time that an epoch takes."""
    done = {
        (row["model"], row["dataset"]): (row["parameters"], row["grown_mib"], milliseconds(row))
        for row in rows
        if "failed" not in row
    }
    lines = []
    for dataset in chosen.datasets:
        for model in chosen.models:
            count, memory = chosen.published(model, dataset) or (None, None)
            parameters, grown, epoch = done.get((model, dataset), (None, None, None))
            values = (count, parameters, memory, grown, epoch)
            lines.append((Cell(title_of(dataset)), Cell(model), *map(number_cell, values, FORMS)))
    counts, memories = ("parameters, published", "parameters"), ("memory, published (GPU)", "memory (CPU)")
    yield Table(chosen.title, ("graph", "model", *counts, *memories, "epoch"), tuple(lines), len(rows))


TABLES: dict[str, Callable[[Experiment, Sequence[Row]], Iterator[Table]]] = {
    "accuracy": accuracy_tables,
    "levels": level_tables,
    "sizes": size_table,
}


def milliseconds(row: Row) -> float:
    """Per epoch, looking at the validation nodes included."""
    return 1000 * row["fit_seconds"] / row["epochs"]


def number_cell(value: float | None, text: str) -> Cell:
    return NONE if value is None else Cell(text.format(value), value)


def mean_cell(found: Estimate | None) -> Cell:
    if found is None:
        return NONE
    deviation = "" if found.std is None else f" ± {100 * found.std:.2f}"
    return Cell(f"{100 * found.mean:.2f}{deviation}", found.mean)


def paired_cell(found: Paired | None) -> Cell:
    if found is None:
        return NONE
    p = "p < 0.001" if found.adjusted < 0.001 else f"p = {found.adjusted:.3f}"
    text = f"{100 * found.difference:+.2f} ± {100 * found.ci95:.2f}, {p}"
    return Cell(text, found.difference, found.verdict)
