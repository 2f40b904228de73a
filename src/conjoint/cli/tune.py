"""conjoint tune: search for settings that suit one graph, within minutes that the user sets."""

import argparse
import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.splits import Split
from ..selection.folds import judging_split
from ..selection.learner import split_of
from ..selection.tune import MODELS, Budget, Tried, best_of, settings_at, tune
from ..storage import read_text, storage_errors, write_atomically
from ..text import file_name
from ..training.config import write_toml
from ..training.runs import split_fingerprint
from .output import answer, remark, share, table
from .plan import Plan, graph_of, plan_from


def work(options: argparse.Namespace) -> None:
    _check(options)
    plan = plan_from(options)
    data = graph_of(plan)
    split = judging_split(data, split_of(data, plan.split, plan.seeds[0]))
    config = plan.setting.config(plan.seeds[0])
    folder = Path(options.out or Path("tuning") / file_name(data.name))
    _open(folder, data, split)
    best: list[Tried] = []

    def tell(trial: Tried) -> None:
        if best and trial.merit <= best[0].merit:
            return
        best[:] = [trial]
        remark(options, f"{share(trial.val_accuracy)} on validation: {_words(trial.point)}")

    budget = Budget(options.minutes, options.trials, options.trial_seeds, options.trial_epochs)
    models = tuple(options.models or MODELS)
    trials = tune(data, split, folder, budget=budget, base=config, models=models, on_trial=tell)
    if not trials:
        raise InputError(f"--minutes {options.minutes}: not enough for one trial; give it more")
    chosen = best_of(trials)
    path = _keep(chosen, plan, budget, folder)
    answer(
        options,
        {"folder": str(folder), "trials": len(trials), "best": asdict(chosen)},
        _table(trials),
        f"\n{len(trials)} trials. Train with the best: conjoint train --config {path}",
    )


def _check(options: argparse.Namespace) -> None:
    if not 0.0 < options.minutes < 1e6:
        raise InputError(f"--minutes {options.minutes}: give a number above 0")
    for option, value in (("--trial-seeds", options.trial_seeds), ("--trial-epochs", options.trial_epochs)):
        if value < 1:
            raise InputError(f"{option} {value}: give 1 or more")
    if importlib.util.find_spec("optuna") is None:
        raise InputError("tune: it needs optuna; install it with: pip install 'conjoint[tune]'")
    for name in options.models or ():
        if name not in MODELS:
            raise InputError(f"--models {name}: choose among {', '.join(MODELS)}")


def _open(folder: Path, data: Graph, split: Split) -> None:
    """Make the folder, or make sure that the search in it is about the same graph and split."""
    about = {"graph": data.fingerprint, "split": split_fingerprint(split)}
    path = folder / "search.json"
    if path.exists():
        try:
            known = json.loads(read_text(path, 1 << 16, "the search"))
        except ValueError:
            known = None
        if known != about:
            raise InputError(
                f"--out {folder}: it holds a search on another graph or split; choose another folder"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"--out {folder}: already there and not a search; choose another folder")
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(about) + "\n").encode())


def _keep(chosen: Tried, plan: Plan, budget: Budget, folder: Path) -> Path:
    """best.toml: the graph and split of the search with the settings of its best trial, trained as it was."""
    network, training = settings_at(chosen.point)
    training |= {"epochs": budget.epochs, "patience": budget.patience}
    document = {"data": dict(plan.data), "split": dict(plan.split), "model": network, "train": training}
    path = folder / "best.toml"
    write_atomically(path, write_toml(document).encode())
    return path


def _table(trials: list[Tried]) -> str:
    ranked = sorted(trials, key=lambda trial: trial.merit, reverse=True)[:10]
    rows = [
        {"validation": share(t.val_accuracy), "seconds": f"{t.seconds:.0f}", "settings": _words(t.point)}
        for t in ranked
    ]
    return table(rows, right=("validation", "seconds"))


def _words(point: dict[str, Any]) -> str:
    words = (
        f"{point['model']}, hidden {point['hidden']}, dropout {point['dropout']:.1f}, lr {point['lr']:.4f}"
    )
    words += f", weight decay {point['weight_decay']:.1e}"
    if point["consistent"]:
        words += f", consistency {point['passes']} x {point['weight']:.1f} at {point['temperature']:.2f}"
    return words
