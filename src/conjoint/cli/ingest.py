"""conjoint ingest: tables of any size into a graph folder that training maps into memory."""

import argparse

from .parser import add_output_options

SUMMARY = "make a graph folder from tables that may be larger than memory"
DESCRIPTION = """\
Read an edge table and a node table piece by piece and write a folder of plain arrays, which
`conjoint train FOLDER` and `conjoint predict` map into memory. Every column of the node
table that has no other role must hold numbers; they are standardised. The folder appears
when it is complete; an interrupted ingestion leaves nothing."""

EXAMPLES = """\
examples:
  conjoint ingest --edges links.parquet --nodes people.parquet --label team --out people/
  conjoint ingest --edges e.csv --nodes n.csv --label topic --split-column use --ignore name --out g/
  conjoint train people/ --batch neighbours --out runs/people
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--edges", required=True, metavar="FILE", help="one edge per row: .csv, .tsv, .parquet"
    )
    parser.add_argument(
        "--nodes", required=True, metavar="FILE", help="one node per row: .csv, .tsv, .parquet"
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder to make")
    parser.add_argument("--id", metavar="COLUMN", help="the column with the node's id")
    parser.add_argument("--source-column", metavar="COLUMN", help="the column with the edge's first end")
    parser.add_argument("--target-column", metavar="COLUMN", help="the column with the edge's second end")
    parser.add_argument("--label", metavar="COLUMN", help="the column with the class; empty cells: unknown")
    parser.add_argument("--split-column", metavar="COLUMN", help="the column that says train, val or test")
    parser.add_argument("--ignore", metavar="COLUMN", nargs="+", default=[], help="columns to leave out")
    parser.add_argument("--as-they-are", action="store_true", help="do not standardise the features")
    parser.add_argument("--drop-unknown", action="store_true", help="skip edges to unknown nodes")
    parser.add_argument("--name", help="what to call the graph; default: the name of the edge table")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..store import ingest
    from .terminal import clean, print_json, say

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
    about = {
        "out": options.out,
        "nodes": made.nodes,
        "edges": made.entries // 2,
        "features": made.features,
        "classes": list(made.class_names),
        "notes": list(made.notes),
    }
    if options.json:
        print_json(about)
        return
    for note in () if silent else made.notes:
        say(clean(note))
    print(
        f"{clean(options.out)}: {made.nodes} nodes, {made.entries // 2} edges, {made.features} features, "
        f"{len(made.class_names)} classes"
    )
