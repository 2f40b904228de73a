"""conjoint report: one HTML page about a run, or with every result of the paper's experiments."""

import argparse
from pathlib import Path

from ..errors import InputError
from ..evaluation.run_report import write_report
from ..experiments.markdown import markdown_pages
from ..experiments.report import build_report, kept_portrait
from ..experiments.rows import read_rows
from ..storage import storage_errors, write_atomically
from .output import clean, say
from .run_folder import node_names, open_run, seed_folders


def work(options: argparse.Namespace) -> None:
    run = None if options.run is None else Path(options.run)
    if run is not None and (run.is_dir() or options.results is None):
        if not any((folder / "model.json").is_file() for folder in seed_folders(run)):
            raise InputError(f"{run}: no run folder; name one that `conjoint train` wrote, or use --results")
        about_run(options, run)
    else:
        about_results(options)


def about_run(options: argparse.Namespace, run: Path) -> None:
    if options.markdown:
        raise InputError(f"--markdown {options.markdown}: a run's report is HTML; use --out")
    out = _target(options.out or str(run / "report.html"))
    opened = open_run(options)
    names = node_names(opened.plan.data, opened.data, options.name_column)
    write_atomically(out, write_report(opened.run, opened.trained, run, names).encode())
    print(clean(out))


def about_results(options: argparse.Namespace) -> None:
    folder = Path(options.results or "results")
    if not folder.is_dir():
        raise InputError(f"--results {folder}: no such folder; make rows with `conjoint reproduce`")
    rows = read_rows(folder)
    out = _target(options.markdown or options.out or "report.html")
    if options.markdown:
        pages = markdown_pages(rows)
        with storage_errors(out):
            out.mkdir(exist_ok=True)
        index = out / "index.md"
        if index.exists() and not index.read_bytes().startswith(pages["index.md"][:40]):
            raise InputError(
                f"--markdown {out}: its index.md is not from `conjoint report`; name another folder"
            )
        for name, content in pages.items():
            write_atomically(out / name, content)
    else:
        write_atomically(out, build_report(rows, kept_portrait(folder, say)).encode())
    print(out)


def _target(path: str) -> Path:
    out = Path(path)
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} is not there; make it first")
    return out
