"""A search for settings that suit one graph: Optuna proposes a point, short trainings judge it.

Test nodes play no part: a trial is worth the accuracy on validation nodes that its own training chose. Trials
are lines of a file, appended when they are done; a search that is killed loses the one in progress.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from .. import defaults
from ..errors import Diverged, InputError
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..storage import read_text, storage_errors
from ..training import TrainConfig, config_from, fit
from .choose import network

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

MODELS = (
    "spread-trust",
    "gated-trust",
    "gat",
    "cat-i-zero",
    "cat-i-mf",
    "cat-e-mf",
    "cat-i-smooth",
    "cat-e-smooth",
    "cat-i-spectral",
    "cat-e-spectral",
)
MODEL_SETTINGS = ("hidden", "dropout")
CONSISTENCY_SETTINGS = ("passes", "weight", "temperature", "ramp")
YOUNGER = {"ramp": 0}  # what the points of earlier searches did not have, and what they meant by that
RECOMMENDED = {
    "model": MODELS[0],
    "hidden": 32,
    "dropout": 0.5,
    "lr": defaults.TRAIN["lr"],
    "weight_decay": 5e-4,
    "consistent": True,
    **defaults.TRAIN["consistency"],
}
FILE, LIMIT = "trials.jsonl", 64 * 1024**2
WORST_LOSS = 1e30
Point = dict[str, Any]


def distributions(models: Sequence[str] = MODELS) -> "dict[str, BaseDistribution]":
    """Ranges around what the benchmarks' papers use and around what is recommended."""
    # Optuna is an optional extra.
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    return {
        "model": CategoricalDistribution(tuple(models)),
        "hidden": CategoricalDistribution((8, 16, 32)),
        "dropout": FloatDistribution(0.2, 0.8, step=0.1),
        "lr": FloatDistribution(0.002, 0.1, log=True),
        "weight_decay": FloatDistribution(1e-5, 5e-3, log=True),
        "consistent": CategoricalDistribution((True, False)),
        "passes": CategoricalDistribution((2, 4)),
        "weight": FloatDistribution(0.3, 5.0, log=True),
        "temperature": FloatDistribution(0.3, 0.7),
        "ramp": CategoricalDistribution((0, 50)),
    }


def settings_at(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(network with its name, training) at a point of the space."""
    chosen = {"name": point["model"], **{name: point[name] for name in MODEL_SETTINGS}}
    training: dict[str, Any] = {name: point[name] for name in ("lr", "weight_decay")}
    if point["consistent"]:
        training["consistency"] = {name: point[name] for name in CONSISTENCY_SETTINGS if point[name]}
    return chosen, training


@dataclass(frozen=True)
class Tried:
    """One point of the space and how it did on the validation nodes, over a few seeds."""

    point: Point
    val_accuracy: float
    val_loss: float
    seconds: float

    @property
    def merit(self) -> tuple[float, float]:
        """Accuracy first, the lower loss between equals."""
        return self.val_accuracy, -self.val_loss


def best_of(trials: Iterable[Tried]) -> Tried:
    return max(trials, key=lambda trial: trial.merit)


@dataclass(frozen=True)
class Budget:
    """When to stop, and how much a trial may cost.

    Args:
        minutes: of this search; a trial that is not done by then is given up.
        trials: at most this number, earlier ones included.
        seeds: trainings per trial, each with a seed of its own.
        epochs, patience: of each of them.
    """

    minutes: float = 10.0
    trials: int = 1000
    seeds: int = 2
    epochs: int = 300
    patience: int = 50


class _TimeIsUp(Exception):
    pass


def tune(
    data: Graph,
    split: Split,
    folder: Path,
    *,
    budget: Budget | None = None,
    base: TrainConfig | None = None,
    models: Sequence[str] = MODELS,
    on_trial: Callable[[Tried], None] | None = None,
) -> list[Tried]:
    """Search until the budget is spent; trials of an earlier search in `folder` count and are built upon.

    Args:
        base: training settings that the search does not vary; its seed decides what is proposed. A rule that
            looks at test nodes is replaced by "val-loss".
        models: names to choose among.
        on_trial: called after each trial.
    """
    graph, budget, base = as_graph(data), budget or Budget(), (base or TrainConfig()).blind()
    trials = read_trials(folder)
    deadline = time.monotonic() + 60.0 * budget.minutes
    study = _study(trials, base.seed + len(trials))
    if not trials and MODELS[0] in models:
        study.enqueue_trial(RECOMMENDED)
    space = distributions(models)
    while len(trials) < budget.trials and time.monotonic() < deadline:
        asked = study.ask(space)
        try:
            trial = _judge(asked.params, graph, split, base, budget, deadline)
        except _TimeIsUp:
            break
        study.tell(asked, _worth(trial))
        trials.append(trial)
        _append(folder, trial)
        if on_trial is not None:
            on_trial(trial)
    return trials


def _study(trials: Sequence[Tried], seed: int) -> "Study":
    """A study in memory that knows the earlier trials."""
    # Optuna is an optional extra.
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    space = distributions()
    for trial in trials:
        known = optuna.trial.create_trial(params=trial.point, distributions=space, value=_worth(trial))
        study.add_trial(known)
    return study


def _worth(trial: Tried) -> float:
    """One number for the sampler: accuracy, with as much of the loss as may decide between equals."""
    return trial.val_accuracy - 1e-4 * min(trial.val_loss, 100.0)


def _judge(
    point: Point, graph: Graph, split: Split, base: TrainConfig, budget: Budget, deadline: float
) -> Tried:
    """The mean over the seeds. One that diverges makes the trial the worst there can be."""
    chosen, training = settings_at(point)
    name = chosen.pop("name")
    started = time.monotonic()

    def watch_the_clock(row: dict[str, Any]) -> None:
        if time.monotonic() > deadline:
            raise _TimeIsUp

    rows: list[dict[str, Any]] = []
    for seed in range(base.seed, base.seed + budget.seeds):
        varied = {**training, "consistency": config_from(training).consistency}
        config = replace(base, epochs=budget.epochs, patience=budget.patience, seed=seed, **varied)
        model = network(name, graph, seed, chosen)
        try:
            rows.append(fit(model, graph, split, config, progress=watch_the_clock).metrics)
        except Diverged:
            return Tried(dict(point), 0.0, WORST_LOSS, time.monotonic() - started)
    accuracy, loss = (fmean(row[name] for row in rows) for name in ("val_accuracy", "val_loss"))
    return Tried(dict(point), accuracy, loss, round(time.monotonic() - started, 3))


def _append(folder: Path, trial: Tried) -> None:
    path = folder / FILE
    line = json.dumps(asdict(trial), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    with storage_errors(path), open(path, "ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_trials(folder: Path) -> list[Tried]:
    """What earlier searches have tried. A last line without an end, left by a killed one, is cut off."""
    path = folder / FILE
    if not path.exists():
        return []
    text = read_text(path, LIMIT, "the trials")
    whole = text.rfind("\n") + 1
    if whole < len(text):
        with storage_errors(path), open(path, "r+b") as file:
            file.truncate(len(text[:whole].encode()))
    return [_tried(line, path, number) for number, line in enumerate(text[:whole].splitlines(), start=1)]


def _tried(line: str, path: Path, number: int) -> Tried:
    try:
        trial = Tried(**json.loads(line))
        numbers = (trial.val_accuracy, trial.val_loss, trial.seconds)
        sound = all(isinstance(value, int | float) and math.isfinite(value) for value in numbers)
        trial = replace(trial, point={**YOUNGER, **trial.point})
        sound = sound and _is_in_space(trial.point)
    except (ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise InputError(
            f"{path} line {number}: not a trial of this search; delete the line, or choose another --out"
        )
    return trial


def _is_in_space(point: Point) -> bool:
    space = distributions()
    if point.keys() != space.keys():
        return False
    try:
        return all(
            space[name]._contains(space[name].to_internal_repr(value)) for name, value in point.items()
        )
    except ValueError:
        return False
