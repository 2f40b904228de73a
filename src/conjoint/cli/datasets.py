"""conjoint datasets: the benchmarks, and where each one is."""

import argparse

from .parser import add_output_options

SUMMARY = "the benchmarks: sizes, splits, where found or how to get"
DESCRIPTION = """\
List the benchmark graphs that `conjoint train NAME` knows.

Cora comes with the package. The others are looked for in the folder given with --data or
in CONJOINT_DATA (PyTorch Geometric's and OGB's raw layout), then in the user's cache, and
are else downloaded on first use. Edges are counted once per pair of nodes."""

EXAMPLES = """\
examples:
  conjoint datasets
  conjoint datasets --data ~/graphs
  CONJOINT_DATA=~/graphs conjoint datasets --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="FOLDER", help="folder with raw files")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..data import datasets_table
    from .terminal import print_json, table

    rows = datasets_table(options.data)
    if options.json:
        print_json({"datasets": rows})
        return
    numbers = ("nodes", "edges", "features", "classes")
    shown = [{**row, "edition": row["source"], "splits": ", ".join(row["splits"])} for row in rows]
    order = ("name", "edition", *numbers, "splits", "where")
    print(table([{name: row[name] for name in order} for row in shown], right=numbers))
