"""Which intervention and strategy to train with: a diagnosis shortlists, validation judges trainings.

Short ones first. Those that are left after two rounds are trained in full, as some learn slowly and end well,
with the seed that was asked for and the next: one training of one seed says little about a point or two.
The diagnosis sees training labels alone, trainings are judged by validation nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import InputError
from ..nn import zoo
from ..training import TrainConfig
from .advice import STRATEGIES, shortlist
from .diagnosis import diagnose
from .trials import Choice, Trial, Watch, attempt, blind

SHORT_ROUNDS = 2  # each with a seed of its own; after each, the better half goes on
FULL = 2  # trainings of each that is left
SHORT_EPOCHS, SHORT_PATIENCE = 200, 50


def candidates_of(interventions: Sequence[str]) -> list[str]:
    """Both strategies of each intervention, as names of the zoo."""
    names = [f"cat-{letter}-{name}" for name in interventions for letter in STRATEGIES]
    return [name for name in names if name in zoo.MODELS]


def choose(
    data: Data,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any] | None = None,
    *,
    on_trial: Callable[[Trial], None] | None = None,
    watch: Watch | None = None,
) -> Choice:
    """The candidate with the highest mean validation accuracy when trained in full, ties by lower loss.

    Args:
        config: of the training to come; no trial chooses an epoch by test nodes.
        settings: of the network; a candidate that does not know one goes without it.
        on_trial: called after each training.
        watch: looks on while one runs, for a progress bar.
    """
    found = diagnose(data, split.train, seed=config.seed)
    candidates = candidates_of(shortlist(found))
    left, trials = candidates, list[Trial]()
    for seeds, short in [*(([number], True) for number in range(SHORT_ROUNDS)), (range(FULL), False)]:
        for name in left:
            for number in seeds:
                now = _of_round(blind(config), number, short)
                trial = attempt(name, data, split, now, settings or {}, short, watch)
                trials.append(trial)
                if on_trial is not None:
                    on_trial(trial)
        left = Choice("", tuple(candidates), tuple(trials)).best_first(left)
        left = left[: max(1, (len(left) + 1) // 2)]
    if not any(trial.epochs for trial in trials if trial.model == left[0]):
        raise InputError(
            f"--intervention auto: every candidate diverged with lr={config.lr}; try a smaller one"
        )
    return Choice(left[0], tuple(candidates), tuple(trials), found)


def _of_round(config: TrainConfig, number: int, short: bool) -> TrainConfig:
    config = replace(config, seed=config.seed + number)
    if not short:
        return config
    patience = min(config.patience or SHORT_PATIENCE, SHORT_PATIENCE)
    return replace(config, epochs=min(config.epochs, SHORT_EPOCHS), patience=patience)
