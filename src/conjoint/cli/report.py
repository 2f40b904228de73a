"""conjoint report: one HTML page with every result, from rows alone."""

import argparse
from pathlib import Path

from ..errors import InputError
from ..experiments.report import build_report, kept_portrait, markdown_page
from ..experiments.rows import read_rows
from ..storage import write_atomically
from .output import say


def work(options: argparse.Namespace) -> None:
    folder = Path(options.results)
    if not folder.is_dir():
        raise InputError(f"--results {folder}: no such folder; make rows with `conjoint reproduce`")
    rows = read_rows(folder)
    out = Path(options.markdown or options.out)
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} is not there; make it first")
    text = markdown_page(rows) if options.markdown else build_report(rows, kept_portrait(folder, say))
    write_atomically(out, text.encode())
    print(out)
