"""conjoint datasets: the benchmarks, and where each one is."""

import argparse

from ..benchmark_files import datasets_table
from .output import answer, table

NUMBERS = ("nodes", "edges", "features", "classes")


def work(options: argparse.Namespace) -> None:
    rows = datasets_table(options.data)
    shown = [{**row, "edition": row["source"], "splits": ", ".join(row["splits"])} for row in rows]
    order = ("name", "edition", *NUMBERS, "splits", "where")
    lines = table([{name: row[name] for name in order} for row in shown], right=NUMBERS)
    answer(options, {"datasets": rows}, lines)
