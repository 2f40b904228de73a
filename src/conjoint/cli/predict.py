"""conjoint predict: the class of every node, or of nodes that came after training, by the user's own ids."""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..data.own import read_new_nodes
from ..errors import InputError
from ..nn.zoo import input_features, input_graph
from ..text import clean
from ..training.predictions import predict_new_nodes, table_in_pieces
from .output import must_be_writable, print_json, remark, table
from .run_folder import Opened, open_run

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
    for columns in _known_nodes(opened) if options.new_nodes is None else [_new_nodes(opened, options)]:
        wanted = columns["label"] == "" if options.unlabelled else slice(None)
        yield {name: values[wanted] for name, values in columns.items()}


def _known_nodes(opened: Opened) -> Iterator[dict[str, Any]]:
    for nodes, shares in opened.trained.pieces():
        columns = opened.trained.columns(nodes, shares, with_probabilities=True)
        yield columns if opened.labels is None else {**columns, "label": opened.labels[nodes]}


def _new_nodes(opened: Opened, options: argparse.Namespace) -> dict[str, Any]:
    """Columns of the nodes that came after training."""
    given, before = opened.plan.data, opened.data
    if "edges" not in given:
        raise InputError(
            f"--new-nodes: {opened.run.sidecar.data_name} was not read from tables of yours, which new nodes "
            "could join; use conjoint.training.predict_new_nodes in Python"
        )
    name, settings = opened.run.spec.name, dict(opened.run.spec.settings)
    after = read_new_nodes(before, given, nodes=options.new_nodes, edges=options.new_edges)
    for note in after.notes:
        if note not in before.notes:
            remark(options, clean(note))
    if input_features(name, before, **settings) is not before.x:
        raise InputError(f"--new-nodes: {name} reads embeddings of its training graph alone; train it again")
    after = input_graph(name, after, **settings)
    new = slice(before.num_nodes, None)
    shares = predict_new_nodes(opened.model, before, after, opened.run.config).cpu().numpy()[new]
    names = np.array([*opened.class_names, ""])  # label -1 takes the last: unlabelled
    return {
        "id": np.asarray(after.node_ids)[new],
        "part": np.full(len(shares), "new"),
        "label": names[after.y.numpy()[new]],
        "predicted": names[shares.argmax(axis=1)],
        "probability": shares.max(axis=1),
        **{f"p({name})": shares[:, k] for k, name in enumerate(opened.class_names)},
    }
