"""conjoint ingest: tables of any size into a graph folder that training maps into memory."""

import argparse

from ..store import ingest
from ..text import clean
from .output import answer, say


def work(options: argparse.Namespace) -> None:
    silent = options.quiet or options.json
    made = ingest(
        options.edges,
        options.nodes,
        options.out,
        id=options.id,
        source=options.source_column,
        target=options.target_column,
        label=options.label,
        split=options.split_column,
        ignore=options.ignore,
        standardise=not options.as_they_are,
        drop_unknown=options.drop_unknown,
        name=options.name,
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
