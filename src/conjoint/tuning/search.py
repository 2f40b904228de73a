"""The search: Optuna proposes a point, short trainings judge it, until the time is up.

Test nodes play no part: a trial is worth the accuracy on validation nodes that its own training chose.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import Diverged
from ..nn import zoo
from ..training import TrainConfig, config_from, fit
from .space import MODELS, Point, distributions, settings_at
from .trials import Trial, append_trial, read_trials

if TYPE_CHECKING:
    from optuna.study import Study

WORST_LOSS = 1e30


@dataclass(frozen=True)
class Budget:
    """When to stop, and how much a trial may cost.

    Args:
        minutes: of this search; a trial that is not done by then is given up.
        trials: at most so many, earlier ones included.
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
    data: Data,
    split: Split,
    folder: Path,
    *,
    budget: Budget | None = None,
    base: TrainConfig | None = None,
    models: Sequence[str] = MODELS,
    on_trial: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """Search until the budget is spent; trials of an earlier search in `folder` count and are built upon.

    Args:
        base: training settings that the search does not vary; its seed decides what is proposed.
        models: names from the zoo to choose among.
        on_trial: called after each trial.
    """
    budget, base = budget or Budget(), base or TrainConfig()
    trials = read_trials(folder)
    deadline = time.monotonic() + 60.0 * budget.minutes
    study = _study(trials, base.seed + len(trials))
    space = distributions(models)
    while len(trials) < budget.trials and time.monotonic() < deadline:
        asked = study.ask(space)
        try:
            trial = _judge(asked.params, data, split, base, budget, deadline)
        except _TimeIsUp:
            break
        study.tell(asked, _worth(trial))
        trials.append(trial)
        append_trial(folder, trial)
        if on_trial is not None:
            on_trial(trial)
    return trials


def _study(trials: Sequence[Trial], seed: int) -> "Study":
    """A study in memory that knows the earlier trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    space = distributions()
    for trial in trials:
        known = optuna.trial.create_trial(params=trial.point, distributions=space, value=_worth(trial))
        study.add_trial(known)
    return study


def _worth(trial: Trial) -> float:
    """One number for the sampler: accuracy, with as much of the loss as may decide between equals."""
    return trial.val_accuracy - 1e-4 * min(trial.val_loss, 100.0)


def _judge(
    point: Point, data: Data, split: Split, base: TrainConfig, budget: Budget, deadline: float
) -> Trial:
    """The mean over the seeds. One that diverges makes the trial the worst there can be."""
    network, training = settings_at(point)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for seed in range(base.seed, base.seed + budget.seeds):
        settings = {"epochs": budget.epochs, "patience": budget.patience, "seed": seed, **training}
        config = replace(base, **{**settings, "consistency": config_from(training).consistency})
        try:
            rows.append(_train(network, data, split, config, deadline))
        except Diverged:
            return Trial(dict(point), 0.0, WORST_LOSS, time.monotonic() - started)
    accuracy, loss = (fmean(row[name] for row in rows) for name in ("val_accuracy", "val_loss"))
    return Trial(dict(point), accuracy, loss, round(time.monotonic() - started, 3))


def _train(
    network: dict[str, Any], data: Data, split: Split, config: TrainConfig, deadline: float
) -> dict[str, Any]:
    settings = dict(network)
    model = zoo.build(
        settings.pop("name"),
        features=int(data.x.size(1)),
        classes=len(getattr(data, "class_names", None) or []) or int(data.y.max()) + 1,
        num_nodes=int(data.num_nodes or 0),
        seed=config.seed,
        **settings,
    )

    def watch_the_clock(row: dict[str, Any]) -> None:
        if time.monotonic() > deadline:
            raise _TimeIsUp

    return fit(model, data, split, config, progress=watch_the_clock).metrics
