"""What a training leaves behind: files in the run folder, a table on stdout, the next commands to try."""

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import defaults
from ..graph.graph import Graph
from ..selection.choose import Choice
from ..selection.learner import Trained
from ..text import clean
from ..training import Run, summarise
from ..training.predictions import table_in_pieces
from ..training.seeds import Estimate
from .output import print_json, share, table
from .plot import draw

SHOWN = {"val_accuracy": "validation", "test_accuracy": "test", "all_accuracy": "all nodes"}
RESULT, CHOICE = "result.json", "choice.json"
DOUBT = "Many edges join nodes no more alike than random pairs, be it the edges' fault or the features'."
GATE = "Whether each feature should have a weight of its own depends on the graph."


def keep_results(run: Run, trained: Trained, plots: bool, ranks: int = 1) -> None:
    """The predictions, the row of results and the pictures, into the run folder."""
    predicted = []
    with table_in_pieces(run.path / "predictions.csv") as append:
        for nodes, shares in trained.pieces():
            append(trained.columns(nodes, shares))
            predicted.append(shares.argmax(axis=1))
    row = {"dataset": trained.graph.name, "model": run.spec.name, **trained.row(np.concatenate(predicted))}
    row |= {"ranks": ranks} if trained.batch is not None else {}
    run.write(RESULT, (json.dumps(row, indent=1, allow_nan=False) + "\n").encode())
    if plots:
        draw(run, trained)


def report(
    done: Sequence[tuple[Run, Trained]],
    graph: Graph,
    out: Path,
    options: argparse.Namespace,
    choice: Choice | None = None,
) -> None:
    """What came out, and how the model was chosen if that was left to validation."""
    rows = [{**json.loads((run.path / RESULT).read_text()), "run": str(run.path)} for run, _ in done]
    summary = summarise(rows)
    if options.json:
        estimates = {name: vars(found) for name, found in summary.estimates.items()}
        chosen = {} if choice is None else {"choice": choice.to_dict()}
        print_json({"out": str(out), "rows": rows, "summary": estimates, **chosen})
        return
    if choice is not None:
        print(choice_text(choice))
    first, split = rows[0], done[0][1].split
    train, val, test = split.sizes
    print(
        f"{first['model']} on {clean(graph.name)}: {graph.num_nodes} nodes, {first['parameters']} parameters"
        f"; split {split.name}: {train} train, {val} validation, {test} test\n"
    )
    shown = [
        {
            "seed": row["seed"],
            **{title: share(row[name]) for name, title in SHOWN.items()},
            "epochs": row["epochs"],
            "seconds": f"{row['seconds']:.1f}",
        }
        for row in rows
    ]
    if len(rows) > 1:
        means = {title: _with_interval(summary[name]) for name, title in SHOWN.items()}
        seconds = f"{sum(row['seconds'] for row in rows):.1f} in all"
        shown.append({"seed": "mean ± 95% CI", **means, "epochs": "", "seconds": seconds})
    print(table(shown, right=(*SHOWN.values(), "epochs", "seconds")))
    if first["saw_test"]:
        print("Rule 'release' chose the epoch by test accuracy: the test column estimates nothing.")
    if not options.quiet:
        print(_next_commands(out, graph))


def _with_interval(found: Estimate) -> str:
    return f"{100 * found.mean:.1f} ± {100 * (found.ci95 or 0.0):.1f}%"


def choice_text(choice: Choice) -> str:
    """Every candidate with how often it was trained, best first."""
    standing = {name: choice.standing(name) for name in choice.candidates}

    def rank(name: str) -> tuple[bool, int, float, float]:
        trainings, accuracy, loss = standing[name]
        return name != choice.model, -trainings, -accuracy, loss

    lines = [
        {"candidate": name, "trainings": trainings, "validation": share(accuracy), "loss": f"{loss:.3f}"}
        for name in sorted(standing, key=rank)
        for trainings, accuracy, loss in [standing[name]]
    ]
    if choice.diagnosis is not None:
        head = f"--intervention auto chose {choice.model}; validation nodes alone were asked:"
    else:
        why = DOUBT if choice.candidates == defaults.IF_DOUBTED else GATE
        head = f"{why} Validation nodes chose {choice.model}:"
    return f"{head}\n\n{table(lines, right=('trainings', 'validation', 'loss'))}\n"


def _next_commands(out: Path, graph: Graph) -> str:
    run, node = clean(shlex.quote(str(out))), clean(shlex.quote(str(graph.node_ids[0])))
    commands = {
        f"conjoint predict {run} --out predictions.csv": "classes and probabilities of all nodes",
        f"conjoint cluster {run}": "how well the classes stand apart",
        f"conjoint explain {run} {node} --plot ego.png": "whom this node listens to, and why",
        f"conjoint plot {run} --map tsne": "a map of the embeddings",
    }
    width = max(map(len, commands))
    lines = [f"  {command:{width}}  {says}" for command, says in commands.items()]
    return "\n".join([f"\nkept in {run}; next:", *lines])
