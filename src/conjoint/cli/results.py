"""What a training leaves behind: files in the run folder, a table on stdout, the next commands to try."""

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch_geometric.data import Data

from ..data import write_table
from ..data.splits import Split
from ..training import Fitted, Run, predict_proba, summarise
from ..training.seeds import Spread
from .auto import choice_text
from .terminal import clean, print_json, share, table

if TYPE_CHECKING:
    from ..evaluation.trials import Choice

SHOWN = {"val_accuracy": "validation", "test_accuracy": "test", "all_accuracy": "all nodes"}


@dataclass(frozen=True, eq=False)
class Trained:
    run: Run
    fitted: Fitted
    split: Split
    row: dict[str, Any]


def keep_results(trained: Trained, data: Data, plots: bool) -> None:
    """The result row, the predictions and the pictures, into the run folder."""
    run, fitted = trained.run, trained.fitted
    run.write("result.json", (json.dumps(trained.row, indent=1, allow_nan=False) + "\n").encode())
    probabilities = predict_proba(fitted.model, data, fitted.config).cpu().numpy()
    columns = prediction_columns(probabilities, data, list(run.sidecar.class_names), trained.split)
    write_table(run.path / "predictions.csv", columns)
    if plots:
        from .plot import draw

        draw(run, fitted.model, data, trained.split)


def prediction_columns(
    probabilities: np.ndarray, data: Data, class_names: Sequence[str], split: Split
) -> dict[str, Any]:
    """id, part (train, val, test or nothing), label, predicted class and how sure the network is of it."""
    names = np.array([*class_names, ""])  # label -1 takes the last: unlabelled
    guess = probabilities.argmax(axis=1)
    return {
        "id": np.asarray(data.node_ids),
        "part": parts_of(split, len(probabilities)),
        "label": names[data.y.cpu().numpy()],
        "predicted": names[guess],
        "probability": probabilities.max(axis=1),
    }


def parts_of(split: Split, nodes: int) -> np.ndarray:
    parts = np.full(nodes, "", dtype="<U5")
    for name, index in (("test", split.reveal_test()), ("val", split.val), ("train", split.train)):
        parts[index.cpu().numpy()] = name
    return parts


def report(
    trained: Sequence[Trained],
    data: Data,
    out: Path,
    options: argparse.Namespace,
    choice: "Choice | None" = None,
) -> None:
    """What came out, and how the model was chosen if that was left to validation."""
    rows = [{**one.row, "run": str(one.run.path)} for one in trained]
    summary = summarise(rows)
    if options.json:
        spreads = {name: vars(spread) for name, spread in summary.spread.items()}
        chosen = {} if choice is None else {"choice": choice.to_dict()}
        print_json({"out": str(out), "rows": rows, "summary": spreads, **chosen})
        return
    first = rows[0]
    if choice is not None:
        print(choice_text(choice))
    print(_headline(first, data, trained[0].split))
    shown = [_shown(row) for row in rows]
    if len(rows) > 1:
        shown.append({"seed": "mean ± 95% CI", **{SHOWN[name]: _bar(summary[name]) for name in SHOWN}})
        shown[-1] |= {"epochs": "", "seconds": f"{sum(row['seconds'] for row in rows):.1f} in all"}
    print(table(shown, right=(*SHOWN.values(), "epochs", "seconds")))
    if first["saw_test"]:
        print("Rule 'release' chose the epoch by test accuracy: the test column estimates nothing.")
    if not options.quiet:
        print(_next_commands(out, data))


def _headline(row: dict[str, Any], data: Data, split: Split) -> str:
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


def _bar(spread: Spread) -> str:
    return f"{100 * spread.mean:.1f} ± {100 * (spread.ci95 or 0.0):.1f}%"


def _next_commands(out: Path, data: Data) -> str:
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
