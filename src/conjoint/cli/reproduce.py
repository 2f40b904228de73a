"""conjoint reproduce: run or complete one of the paper's tables."""

import argparse
from pathlib import Path

from .parser import add_output_options

SUMMARY = "run or complete a table or figure of the paper"
DESCRIPTION = """\
Run what one of the paper's tables or figures needs and print it, published beside measured.

Each finished run is one line in RESULTS/DATASET.jsonl and is never done again: stop whenever
you like, the same command goes on. Tables that share runs share their rows."""

EXAMPLES = """\
examples:
  conjoint reproduce                           what there is, and how much of it is done
  conjoint reproduce random-splits --quick     a few models on Cora, in minutes
  conjoint reproduce table1 --data ~/graphs    all 720 runs of Table 1
  conjoint reproduce table2 --jobs 2           two processes with one thread each
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="?", metavar="TABLE", help="leave it out for a list")
    parser.add_argument("--quick", action="store_true", help="fewer models, graphs and seeds: minutes")
    parser.add_argument("--only", metavar="DATASET", help="only the runs on this graph")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    parser.add_argument("--data", metavar="FOLDER", help="folder with the benchmarks' raw files")
    parser.add_argument("--results", default="results", metavar="FOLDER", help="rows (default: results)")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..errors import InputError, Interrupted
    from ..experiments.grid import experiment
    from ..experiments.runner import run
    from .progress_of_runs import progress_of_runs

    folder = Path(options.results)
    if options.table is None:
        _list(folder, options.json)
        return
    if options.jobs < 1:
        raise InputError(f"--jobs {options.jobs}: give 1 or more")
    chosen = experiment(options.table, options.quick)
    specs = [spec for spec in chosen.specs if options.only in (None, spec.dataset)]
    if not specs:
        known = ", ".join(dict.fromkeys(spec.dataset for spec in chosen.specs))
        raise InputError(f"--only {options.only}: {options.table} has no runs there; it has {known}")
    try:
        with progress_of_runs(specs, folder, options.jobs, options.quiet) as on_row:
            run(
                specs,
                folder,
                root=options.data,
                jobs=options.jobs,
                isolated=chosen.isolated,
                on_row=on_row,
            )
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; what is done is in {folder}, the same command goes on") from None
    _show(options.table, folder, options.json)


def _list(folder: Path, as_json: bool) -> None:
    from ..experiments.grid import experiment, experiment_names
    from ..experiments.rows import read_rows
    from ..experiments.runner import missing
    from .terminal import print_json, table

    rows = read_rows(folder)
    shown = []
    for name in experiment_names():
        chosen = experiment(name)
        done = len(chosen.specs) - len(missing(chosen.specs, rows))
        shown.append({"table": name, "runs": len(chosen.specs), "done": done, "what": chosen.title})
    if as_json:
        print_json({"experiments": shown})
    else:
        print(table(shown, right=("runs", "done")))


def _show(name: str, folder: Path, as_json: bool) -> None:
    from ..experiments.rows import read_rows
    from ..experiments.tables import tables_of
    from .terminal import print_json, table

    tables = [made for made in tables_of(name, read_rows(folder)) if made.runs]
    if as_json:
        plain = [
            {
                "title": made.title,
                "headers": made.headers,
                "rows": [[e.text for e in row] for row in made.rows],
            }
            for made in tables
        ]
        print_json({"experiment": name, "tables": plain})
        return
    for made in tables:
        lines = [dict(zip(made.headers, (entry.text for entry in row), strict=True)) for row in made.rows]
        print(f"\n{made.title}\n{table(lines)}")
