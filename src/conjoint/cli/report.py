"""conjoint report: one HTML page with every result, from rows alone."""

import argparse

SUMMARY = "one HTML page with every table, figure and an attention explorer"
DESCRIPTION = """\
Make one self-contained HTML page from the rows that `conjoint reproduce` wrote: tables with
published beside measured, figures, and an explorer of a trained network's attention. It needs
no network and opens from any folder.

The explorer's network is kept in RESULTS/report/cora.json; where that is absent, it is
trained first, which takes a while."""

EXAMPLES = """\
examples:
  conjoint report                              writes report.html
  conjoint report --results rows --out out/r.html
  conjoint report --markdown docs/results.md   the same tables as Markdown
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="report.html", metavar="FILE", help="page (default: report.html)")
    parser.add_argument("--results", default="results", metavar="FOLDER", help="rows (default: results)")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown instead")


def work(options: argparse.Namespace) -> None:
    from pathlib import Path

    from ..errors import InputError
    from ..experiments.markdown import page
    from ..experiments.portrait import kept_portrait
    from ..experiments.report import build_report
    from ..experiments.rows import read_rows
    from ..training.runs.storage import write_atomically
    from .terminal import say

    folder = Path(options.results)
    if not folder.is_dir():
        raise InputError(f"--results {folder}: no such folder; make rows with `conjoint reproduce`")
    rows = read_rows(folder)
    out = Path(options.markdown or options.out)
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} is not there; make it first")
    text = page(rows) if options.markdown else build_report(rows, kept_portrait(folder, say))
    write_atomically(out, text.encode())
    print(out)
