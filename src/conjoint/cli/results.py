"""What a training leaves behind: files in the run folder, a table on stdout, the next commands to try."""

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import defaults
from ..graph.graph import Graph
from ..graph.splits import Split
from ..selection.choose import Choice
from ..selection.learner import Trained
from ..training import Run, summarise
from ..training.predictions import table_in_pieces
from ..training.seeds import Estimate
from .output import clean, print_json, share, table
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
    first = rows[0]
    if choice is not None:
        print(choice_text(choice))
    print(_headline(first, graph, done[0][1].split))
    shown = [_shown(row) for row in rows]
    if len(rows) > 1:
        shown.append({"seed": "mean ± 95% CI", **{SHOWN[name]: _bar(summary[name]) for name in SHOWN}})
        shown[-1] |= {"epochs": "", "seconds": f"{sum(row['seconds'] for row in rows):.1f} in all"}
    print(table(shown, right=(*SHOWN.values(), "epochs", "seconds")))
    if first["saw_test"]:
        print("Rule 'release' chose the epoch by test accuracy: the test column estimates nothing.")
    if not options.quiet:
        print(_next_commands(out, graph))


def choice_text(choice: Choice) -> str:
    """Every candidate with how often it was trained, best first."""
    standing = {name: choice.standing(name) for name in choice.candidates}
    order = sorted(standing, key=lambda name: (-standing[name][0], -standing[name][1], standing[name][2]))
    order = [choice.model, *(name for name in order if name != choice.model)]
    lines: list[dict[str, Any]] = []
    for name in order:
        trainings, accuracy, loss = standing[name]
        lines.append(
            {"candidate": name, "trainings": trainings, "validation": share(accuracy), "loss": f"{loss:.3f}"}
        )
    if choice.diagnosis is not None:
        head = f"--intervention auto chose {choice.model}; validation nodes alone were asked:"
    else:
        why = DOUBT if choice.candidates == defaults.IF_DOUBTED else GATE
        head = f"{why} Validation nodes chose {choice.model}:"
    return f"{head}\n\n{table(lines, right=('trainings', 'validation', 'loss'))}\n"


def _headline(row: dict[str, Any], data: Graph, split: Split) -> str:
    train, val, test = split.sizes
    return (
        f"{row['model']} on {clean(data.name)}: {data.num_nodes} nodes, {row['parameters']} parameters; "
        f"split {split.name}: {train} train, {val} validation, {test} test\n"
    )


def _shown(row: dict[str, Any]) -> dict[str, str]:
    accuracies = {title: share(row[name]) for name, title in SHOWN.items()}
    return {
        "seed": str(row["seed"]),
        **accuracies,
        "epochs": str(row["epochs"]),
        "seconds": f"{row['seconds']:.1f}",
    }


def _bar(found: Estimate) -> str:
    return f"{100 * found.mean:.1f} ± {100 * (found.ci95 or 0.0):.1f}%"


def _next_commands(out: Path, data: Graph) -> str:
    run, node = clean(shlex.quote(str(out))), clean(shlex.quote(str(data.node_ids[0])))
    commands = {
        f"conjoint predict {run} --out predictions.csv": "classes and probabilities of all nodes",
        f"conjoint cluster {run}": "how well the classes stand apart",
        f"conjoint explain {run} {node} --plot ego.png": "whom this node listens to, and why",
        f"conjoint plot {run} --map tsne": "a map of the embeddings",
    }
    width = max(map(len, commands))
    lines = [f"  {command:{width}}  {says}" for command, says in commands.items()]
    return "\n".join([f"\nkept in {run}; next:", *lines])
