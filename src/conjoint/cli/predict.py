"""conjoint predict: the class of every node, by the user's own ids."""

import argparse

from .parser import add_output_options, add_run_argument, whole_number

SUMMARY = "the class of every node, with probabilities"
DESCRIPTION = """\
Predict the class of every node of the graph that a run was trained on.

With --out the whole table goes to a file: id, part (train, val, test or nothing), the
label where there is one, the predicted class, and one column of probabilities per class.
Without it, the first rows are shown. In CSV, text that a spreadsheet would run as a
formula gets a leading apostrophe.

Nodes that came after training: --new-nodes and --new-edges name tables like those the run
was trained on. The new nodes are folded in without training, and only they are predicted."""

EXAMPLES = """\
examples:
  conjoint predict runs/cora-gated-trust-1
  conjoint predict runs/cora-gated-trust-1 --out predictions.csv
  conjoint predict runs/teams --unlabelled --out guesses.parquet
  conjoint predict runs/teams --json --rows 3
  conjoint predict runs/teams --new-nodes joined.csv --new-edges links.csv --out guesses.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("--out", metavar="FILE", help="write all rows to .csv, .tsv or .parquet")
    parser.add_argument("--new-nodes", metavar="FILE", help="nodes that came later, in a table like --nodes")
    parser.add_argument("--new-edges", metavar="FILE", help="their edges, in a table like --edges")
    parser.add_argument("--unlabelled", action="store_true", help="only nodes whose label is not known")
    parser.add_argument("--rows", type=whole_number, default=10, metavar="N", help="rows to show; default 10")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..data import write_table
    from ..errors import InputError
    from ..training import predict_proba
    from . import batched
    from .files import must_be_writable
    from .grown import new_nodes
    from .reopen import open_run
    from .results import prediction_columns
    from .terminal import clean, print_json, table

    if (options.new_nodes is None) != (options.new_edges is None):
        raise InputError("--new-nodes and --new-edges go together; give both tables")
    if options.out:
        must_be_writable("--out", options.out)
    if options.new_nodes is None and batched.predict(options):
        return
    opened = open_run(options)
    if options.new_nodes is None:
        probabilities = predict_proba(opened.model, opened.data, opened.run.config).cpu().numpy()
        columns = prediction_columns(probabilities, opened.data, opened.class_names, opened.split)
    else:
        probabilities, columns = new_nodes(opened, options)
    columns |= {f"p({name})": probabilities[:, k] for k, name in enumerate(opened.class_names)}
    if options.unlabelled:
        wanted = columns["label"] == ""
        columns = {name: values[wanted] for name, values in columns.items()}
    total = len(columns["id"])
    if options.out:
        write_table(options.out, columns)
    shown = {name: values[: max(options.rows, 0)].tolist() for name, values in columns.items()}
    rows = [dict(zip(shown, cells, strict=True)) for cells in zip(*shown.values(), strict=True)]
    if options.json:
        print_json({"run": str(opened.run.path), "nodes": total, "out": options.out, "rows": rows})
    elif options.out:
        print(f"{total} rows written to {clean(options.out)}")
    else:
        brief = [{**row, "probability": f"{row['probability']:.3f}"} for row in rows]
        names = ("id", "part", "label", "predicted", "probability")
        print(table([{name: row[name] for name in names} for row in brief], right=("probability",)))
        if total > len(rows) and not options.quiet:
            print(f"... {total - len(rows)} more; --out FILE.csv writes them all")
