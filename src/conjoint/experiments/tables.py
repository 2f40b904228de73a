"""Tables as data, made from rows alone: the same tables are written as Markdown and as HTML."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from ..training import Spread
from .axis import Axis, levels_in
from .grid import Experiment, experiment, published
from .rows import Row, select
from .stats import Cell, Cells, Paired, summarise

# The paper's own names, for readers who have it at hand.
DATASETS = {
    "cora": "Cora",
    "citeseer": "Cite",
    "pubmed": "Pubmed",
    "coauthor-cs": "CoauthorCS",
    "ogbn-arxiv": "OGB-Arxiv",
}


@dataclass(frozen=True)
class Entry:
    """One cell: its text, the number to sort by, and what it says ("better", "worse", "same")."""

    text: str
    value: float | None = None
    says: str = ""


NONE = Entry("-")


@dataclass(frozen=True)
class Table:
    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    runs: int = 0  # how many runs it is made of


def tables_of(name: str, rows: Sequence[Row]) -> list[Table]:
    """The tables of one experiment, from those of its runs that are done."""
    chosen = experiment(name)
    mine = select(rows, (spec.key for spec in chosen.specs))
    if chosen.axis is not None:
        return list(levelled(chosen, chosen.axis, mine))
    if name == "table5":
        return [_sizes(chosen, mine)]
    tables = list(_accuracies(chosen, mine))
    return [*tables, _against_controls(chosen, mine)] if name == "ablation" else tables


def _accuracies(chosen: Experiment, rows: Sequence[Row]) -> Iterator[Table]:
    """One table per graph: published, measured, what the authors' rule would report, against GAT."""
    cells = summarise(rows, chosen.metric, against=compared(chosen))
    headers = ("model", "published", "measured", "95% interval", "runs", "release rule", "gap", "against GAT")
    for dataset in datasets_in(chosen):
        lines = []
        for model in models_in(chosen):
            cell = cells.get((model, dataset))
            paper = None if chosen.published is None else published(chosen.published, model, dataset)
            lines.append(
                (
                    Entry(model),
                    NONE if paper is None else Entry(f"{paper[0]:.2f} ± {paper[1]:.2f}", paper[0]),
                    *_measured(cell),
                )
            )
        yield Table(f"{chosen.title}, {DATASETS[dataset]}", headers, tuple(lines), _runs_on(dataset, rows))


def _measured(cell: Cell | None) -> tuple[Entry, ...]:
    if cell is None or cell.spread is None:
        runs = Entry("0" if cell is None else f"0 ({cell.failed} failed)", 0.0)
        return (NONE, NONE, runs, NONE, NONE, NONE)
    failed = f" ({cell.failed} failed)" if cell.failed else ""
    return (
        Entry(spread_text(cell.spread), cell.spread.mean),
        NONE if cell.spread.ci95 is None else _interval(cell.spread),
        Entry(f"{cell.spread.count}{failed}", float(cell.spread.count)),
        NONE if cell.release is None else Entry(spread_text(cell.release), cell.release.mean),
        NONE if cell.gap is None else Entry(f"{100 * cell.gap.mean:+.2f}", cell.gap.mean),
        NONE if cell.paired is None else _paired(cell.paired),
    )


def _against_controls(chosen: Experiment, rows: Sequence[Row]) -> Table:
    """Does the structure add anything to the self term and the mixing? Each CAT against its own control."""
    lines = []
    for strategy in ("i", "e"):
        control = f"cat-{strategy}-zero"
        models = [f"cat-{strategy}-mf", f"cat-{strategy}-sc"]
        cells = summarise(rows, chosen.metric, against=models, baseline=control)
        for dataset in datasets_in(chosen):
            for model in models:
                cell = cells.get((model, dataset))
                against = NONE if cell is None or cell.paired is None else _paired(cell.paired)
                lines.append((Entry(DATASETS[dataset]), Entry(model), Entry(control), against))
    return Table(
        f"{chosen.title}, with structure against the same network with every edge scored 0",
        ("graph", "model", "control", "against control"),
        tuple(lines),
        len(rows),
    )


def levelled(chosen: Experiment, axis: Axis, rows: Sequence[Row]) -> Iterator[Table]:
    """Per graph with runs: accuracies, one column per level; and differences to references and base level."""
    for dataset in datasets_in(chosen):
        here = [row for row in rows if row["dataset"] == dataset]
        if not here:
            continue
        title = f"{chosen.title}, {DATASETS[dataset]}"
        levels = levels_in(axis, tuple(spec for spec in chosen.specs if spec.dataset == dataset))
        headers = ("model", *map(axis.text, levels))
        column = partial(_column, axis)
        yield Table(
            title, headers, _grid(chosen, summarise(here, chosen.metric, column=column), headers), len(here)
        )
        for reference in chosen.references:
            others = [model for model in models_in(chosen) if model != reference]
            cells = summarise(here, chosen.metric, column=column, against=others, baseline=reference)
            lines = _grid(chosen, cells, headers, paired=True, without=reference)
            yield Table(f"{title}, against {reference}", headers, lines, len(here))
        if axis.base is not None:
            base = axis.text(axis.base)
            rest = tuple(header for header in headers if header != base)
            lines = _grid(chosen, _against_base(chosen, axis, here, base, rest[1:]), rest, paired=True)
            yield Table(f"{title}, against itself at {base}", rest, lines, len(here))
        if chosen.timed:
            yield _times(chosen, axis, here, headers, f"{title}, seconds of a training (median)")


def _times(
    chosen: Experiment, axis: Axis, rows: Sequence[Row], headers: tuple[str, ...], title: str
) -> Table:
    """Seconds of a training with one thread; a median, as some of them shared their core."""
    taken = defaultdict[tuple[str, str], list[float]](list)
    for row in rows:
        if "failed" not in row:
            taken[row["model"], _column(axis, row)].append(row["fit_seconds"])
    lines = []
    for model in models_in(chosen):
        medians = [median(taken[model, header]) if taken[model, header] else None for header in headers[1:]]
        entries = (NONE if middle is None else Entry(f"{middle:.1f}", middle) for middle in medians)
        lines.append((Entry(model), *entries))
    return Table(title, headers, tuple(lines), len(rows))


def _column(axis: Axis, row: Row) -> str:
    return axis.text(axis.level(row))


def _against_base(
    chosen: Experiment, axis: Axis, rows: Sequence[Row], base: str, others: Sequence[str]
) -> Cells:
    """Each model's levels against its base: what `summarise` does between models, with the two exchanged."""
    exchanged = [row | {"model": _column(axis, row), "line": row["model"]} for row in rows]
    cells = summarise(exchanged, chosen.metric, column=lambda row: row["line"], against=others, baseline=base)
    return {(model, header): cell for (header, model), cell in cells.items()}


def _grid(
    chosen: Experiment,
    cells: Cells,
    headers: Sequence[str],
    paired: bool = False,
    without: str | None = None,
) -> tuple[tuple[Entry, ...], ...]:
    """A line for each model `without` one: its accuracy at each level, or (`paired`) the difference found."""
    lines = []
    for model in models_in(chosen):
        if model == without:
            continue
        line = [Entry(model)]
        for header in headers[1:]:
            cell = cells.get((model, header))
            if cell is None or cell.spread is None:
                line.append(NONE)
            elif not paired:
                line.append(Entry(spread_text(cell.spread), cell.spread.mean))
            else:
                line.append(NONE if cell.paired is None else _paired(cell.paired))
        lines.append(tuple(line))
    return tuple(lines)


def _sizes(chosen: Experiment, rows: Sequence[Row]) -> Table:
    """Table 5: parameters and memory beside the paper's, and the time that an epoch takes."""
    lines = []
    done = {(row["model"], row["dataset"]): row for row in rows if "failed" not in row}
    for dataset in datasets_in(chosen):
        for model in models_in(chosen):
            paper, row = published("table5", model, dataset), done.get((model, dataset))
            count, memory = paper if paper is not None else (None, None)
            lines.append(
                (
                    Entry(DATASETS[dataset]),
                    Entry(model),
                    NONE if count is None else Entry(f"{count:.0f}", count),
                    NONE if row is None else Entry(str(row["parameters"]), row["parameters"]),
                    NONE if memory is None else Entry(f"{memory:.1f} GB", memory),
                    NONE if row is None else Entry(f"{row['grown_mib']:.0f} MiB", row["grown_mib"]),
                    NONE if row is None else Entry(f"{milliseconds(row):.1f} ms", milliseconds(row)),
                )
            )
    headers = (
        "graph",
        "model",
        "parameters, published",
        "parameters",
        "memory, published (GPU)",
        "memory (CPU)",
        "epoch",
    )
    return Table(chosen.title, headers, tuple(lines), len(rows))


def milliseconds(row: Row) -> float:
    """Per epoch, looking at the validation nodes included."""
    return 1000 * row["fit_seconds"] / row["epochs"]


def compared(chosen: Experiment) -> list[str]:
    """The models that are tested against GAT: every CAT and every control, not the other baselines."""
    controls = ("gat-self", "mf-only", "sc-only")
    return [model for model in models_in(chosen) if model.startswith("cat-") or model in controls]


def spread_text(spread: Spread) -> str:
    mean = f"{100 * spread.mean:.2f}"
    return mean if spread.std is None else f"{mean} ± {100 * spread.std:.2f}"


def _interval(spread: Spread) -> Entry:
    assert spread.ci95 is not None
    low, high = spread.mean - spread.ci95, spread.mean + spread.ci95
    return Entry(f"{100 * low:.2f} to {100 * high:.2f}", spread.ci95)


def _paired(found: Paired) -> Entry:
    p = "p < 0.001" if found.adjusted < 0.001 else f"p = {found.adjusted:.3f}"
    return Entry(
        f"{100 * found.difference:+.2f} ± {100 * found.ci95:.2f}, {p}", found.difference, found.verdict
    )


def _runs_on(dataset: str, rows: Sequence[Row]) -> int:
    return sum(row["dataset"] == dataset for row in rows)


def models_in(chosen: Experiment) -> list[str]:
    return list(dict.fromkeys(spec.model for spec in chosen.specs))


def datasets_in(chosen: Experiment) -> list[str]:
    return list(dict.fromkeys(spec.dataset for spec in chosen.specs))
