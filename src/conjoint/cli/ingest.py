"""conjoint ingest: tables of any size into a graph folder that training maps into memory."""

import argparse
from typing import Any

from ..data import ingest
from ..text import clean
from .output import answer, say

OWN = ("verb", "edges", "nodes", "out", "as_they_are", "json", "quiet")  # the other options are read_graph's


def reader_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that are arguments of `read_graph`."""
    given = {key.removesuffix("_column"): value for key, value in vars(options).items() if key not in OWN}
    return {name: value for name, value in given.items() if value is not None}


def work(options: argparse.Namespace) -> None:
    silent = options.quiet or options.json
    made = ingest(
        options.edges,
        options.nodes,
        options.out,
        **reader_options(options),
        standardise=not options.as_they_are,
        tell=lambda text: None if silent else say(clean(text)),
    )
    for note in () if silent else made.notes:
        say(clean(note))
    edges, classes = made.entries // 2, list(made.class_names)
    about = {"nodes": made.nodes, "edges": edges, "features": made.features, "classes": classes}
    sizes = f"{made.nodes} nodes, {edges} edges, {made.features} features, {len(classes)} classes"
    answer(
        options,
        {"out": options.out, **about, "notes": list(made.notes)},
        f"{clean(options.out)}: {sizes}",
    )
