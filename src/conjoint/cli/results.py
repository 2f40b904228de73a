"""What a training leaves behind: files in the run folder, a table on stdout, the next commands to try."""

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..graph.graph import Graph
from ..selection.choose import Choice
from ..selection.portfolio import Portfolio
from ..selection.trained import Trained
from ..text import clean, shorten
from ..training import Run, summarise
from ..training.metrics import METRICS
from ..training.predictions import table_in_pieces
from ..training.seeds import Estimate
from .output import print_json, share, table

SHOWN = {"val_accuracy": "validation", "test_accuracy": "test", "all_accuracy": "all nodes"}
RESULT, CHOICE = "result.json", "choice.json"
CLASSES_SHOWN = 15


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
        from .plot import draw  # and scikit-learn with it: half a second that no first epoch need wait for

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
    first, trained, portfolio = rows[0], done[0][1], done[0][1].portfolio
    used = trained.use_of_labels
    print(f"{first['model']} on {clean(graph.name)}: {graph.num_nodes} nodes; {used}\n")
    if portfolio is not None:
        print(members_text(portfolio))
    columns = {name: title for name, title in SHOWN.items() if name in first}
    if not trained.split.val.numel() + len(trained.split.reveal_test()):
        columns.pop("all_accuracy")  # all of them train
    if "estimate" in first:
        columns["val_accuracy"] = "unseen"
    count = "epochs" if portfolio is None else "trainings"
    shown = [
        {
            "seed": row["seed"],
            **{title: share(row[name]) for name, title in columns.items()},
            count: row["epochs"],
            "seconds": f"{row['seconds']:.1f}",
        }
        for row in rows
    ]
    if len(rows) > 1:
        means = {title: _with_interval(summary[name]) for name, title in columns.items()}
        seconds = f"{sum(row['seconds'] for row in rows):.1f} in all"
        shown.append({"seed": "mean ± 95% CI", **means, count: "", "seconds": seconds})
    print(table(shown, right=(*columns.values(), count, "seconds")))
    if told := metrics_text(first):
        print(f"\n{told}")
    if first["saw_test"]:
        print("Rule 'release' chose the epoch by test accuracy: the test column estimates nothing.")
    if not options.quiet:
        print(_next_commands(out, graph))


def members_text(portfolio: Portfolio) -> str:
    """Each member that was trained in full, its weight, and what it has by itself."""
    metric = portfolio.metric
    rows = [
        {"member": one["name"], "weight": share(one["weight"]), metric: f"{one[metric]:.4f}"}
        for one in portfolio.members
    ]
    left = (
        f"\nnot begun or given up, for want of time: {', '.join(portfolio.left_out)}"
        if portfolio.left_out
        else ""
    )
    early = "\nstopped early; --resume goes on with the rest" if portfolio.interrupted else ""
    return f"{table(rows, right=('weight', metric))}{left}{early}\n"


def metrics_text(row: Mapping[str, Any]) -> str:
    """Every metric on nodes that no judged member was trained on and on test nodes, where there are such,
    beside what always saying the most common class has there; then class by class."""
    kinds = {"unseen": row.get("estimate"), "test": row.get("test_metrics")}
    found = {kind: metrics for kind, metrics in kinds.items() if metrics is not None}
    rows = []
    for name in METRICS if found else ():
        line = {"metric": name}
        for kind, metrics in found.items():
            line[f"{kind} nodes"] = f"{metrics[name]:.4f}"
            usual = row.get("majority", {}).get(kind)
            line |= {f"majority, {kind}": f"{usual[name]:.4f}"} if usual else {}
        rows.append(line)
    text = table(rows, right=[name for name in rows[0] if name != "metric"]) if rows else ""
    classes = row.get("classes", {})
    kind = "test" if "test" in classes else "unseen"
    if kind not in classes:
        return text
    most = sorted(classes[kind], key=lambda one: -one["nodes"])
    shown = [{name: _cell(value) for name, value in one.items()} for one in most[:CLASSES_SHOWN]]
    hidden = len(most) - len(shown)
    more = f"\n... {hidden} rarer classes; result.json has them" if hidden else ""
    numbers = ("nodes", "precision", "recall", "f1")
    return f"{text}\n\nclass by class, {kind} nodes:\n\n{table(shown, right=numbers)}{more}"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else shorten(value, 40)


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
    head = f"--intervention auto chose {choice.model}; validation nodes alone were asked:"
    return f"{head}\n\n{table(lines, right=('trainings', 'validation', 'loss'))}\n"


def _next_commands(out: Path, graph: Graph) -> str:
    run, node = clean(shlex.quote(str(out))), clean(shlex.quote(str(graph.node_ids[0])))
    commands = {
        f"conjoint predict {run} --out predictions.csv": "classes and probabilities of all nodes",
        f"conjoint cluster {run}": "how well the classes stand apart",
        f"conjoint explain {run} {node} --plot why.png": "why this node is predicted as it is",
        f"conjoint plot {run} --map tsne": "a map of the embeddings",
    }
    width = max(map(len, commands))
    lines = [f"  {command:{width}}  {says}" for command, says in commands.items()]
    page = out / "report.html"
    told = f" (open {clean(page)})" if page.exists() else ""
    return "\n".join([f"\nkept in {run}{told}; next:", *lines])
