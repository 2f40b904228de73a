"""conjoint predict: the class of every node, or of nodes that came after training, by the user's own ids."""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from ..errors import InputError
from ..text import clean
from ..training.predictions import table_in_pieces
from .opening import Opened, new_nodes, open_run
from .output import must_be_writable, print_json, table

BRIEF = ("id", "part", "label", "predicted", "probability")


def work(options: argparse.Namespace) -> None:
    if (options.new_nodes is None) != (options.new_edges is None):
        raise InputError("--new-nodes and --new-edges go together; give both tables")
    must_be_writable("--out", options.out)
    opened = open_run(options)
    rows: list[dict[str, Any]] = []
    total = 0
    with table_in_pieces(options.out) if options.out else nullcontext() as append:
        for columns in _pieces(opened, options):
            if append is not None:
                append(columns)
            total += len(columns["id"])
            room = max(0, options.rows - len(rows))
            first = {name: values[:room].tolist() for name, values in columns.items()}
            rows += [dict(zip(first, cells, strict=True)) for cells in zip(*first.values(), strict=True)]
    if options.json:
        print_json({"run": str(opened.run.path), "nodes": total, "out": options.out, "rows": rows})
    elif options.out:
        print(f"{total} rows written to {clean(options.out)}")
    else:
        brief = [{**row, "probability": f"{row['probability']:.3f}"} for row in rows]
        print(table([{name: row[name] for name in BRIEF} for row in brief], right=("probability",)))
        if total > len(rows) and not options.quiet:
            print(f"... {total - len(rows)} more; --out FILE.csv writes them all")


def _pieces(opened: Opened, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Columns of the nodes that are asked for, a part of a large graph at a time."""
    for columns in _new(opened, options) if options.new_nodes is not None else _known(opened):
        wanted = columns["label"] == "" if options.unlabelled else slice(None)
        yield {name: values[wanted] for name, values in columns.items()}


def _known(opened: Opened) -> Iterator[dict[str, Any]]:
    for nodes, shares in opened.trained.pieces():
        yield opened.trained.columns(nodes, shares, with_probabilities=True)


def _new(opened: Opened, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    shares, columns = new_nodes(opened, options)
    yield columns | {f"p({name})": shares[:, k] for k, name in enumerate(opened.class_names)}
