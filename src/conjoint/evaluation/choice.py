"""Which intervention and strategy to train with: a diagnosis shortlists, validation judges trainings.

Short ones first. Those that are left after two rounds are trained in full, as some learn slowly and end well,
with the seed that was asked for and the next: one training of one seed says little about a point or two.
Test nodes play no part: the diagnosis sees training labels alone, trainings are judged by validation nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import Diverged, InputError
from ..nn import zoo
from ..training import TrainConfig, fit
from .advice import STRATEGIES, shortlist
from .diagnosis import Diagnosis, diagnose

SHORT_ROUNDS = 2  # each with a seed of its own; after each, the better half goes on
FULL = 2  # trainings of each that is left
SHORT_EPOCHS, SHORT_PATIENCE = 200, 50


@dataclass(frozen=True)
class Trial:
    """One training of one candidate."""

    model: str
    seed: int
    val_accuracy: float
    val_loss: float
    epochs: int
    short: bool


@dataclass(frozen=True)
class Choice:
    """The model chosen, and everything that it was chosen by."""

    model: str
    candidates: tuple[str, ...]
    trials: tuple[Trial, ...]
    diagnosis: Diagnosis

    def standing(self, model: str) -> tuple[int, float, float]:
        """Trainings, and mean validation accuracy and loss: of those in full if it came so far."""
        own = [trial for trial in self.trials if trial.model == model]
        judged = [trial for trial in own if not trial.short] or own
        return len(own), fmean(t.val_accuracy for t in judged), fmean(t.val_loss for t in judged)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


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
) -> Choice:
    """The candidate with the highest mean validation accuracy when trained in full, ties by lower loss.

    Args:
        config: of the training to come; no trial chooses an epoch by test nodes.
        settings: of the network; a candidate that does not know one goes without it.
        on_trial: called after each training.
    """
    found = diagnose(data, split.train, seed=config.seed)
    candidates = candidates_of(shortlist(found))
    left, trials = candidates, list[Trial]()
    first = replace(config, rule="val-loss" if config.saw_test else config.rule, see_test=False)
    for seeds, short in [*(([number], True) for number in range(SHORT_ROUNDS)), (range(FULL), False)]:
        for name in left:
            for number in seeds:
                trial = _try(name, data, split, _of_round(first, number, short), short, settings or {})
                trials.append(trial)
                if on_trial is not None:
                    on_trial(trial)
        so_far = Choice("", tuple(candidates), tuple(trials), found)
        merit = {name: so_far.standing(name) for name in left}
        left = sorted(left, key=lambda name: (-merit[name][1], merit[name][2]))
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


def _try(
    name: str, data: Data, split: Split, config: TrainConfig, short: bool, settings: Mapping[str, Any]
) -> Trial:
    known = zoo.settings_of(name)
    model = zoo.build(
        name,
        features=int(data.x.size(1)),
        classes=len(getattr(data, "class_names", None) or []) or int(data.y.max()) + 1,
        num_nodes=int(data.num_nodes or 0),
        seed=config.seed,
        **{key: value for key, value in settings.items() if key in known},
    )
    try:
        fitted = fit(model, data, split, config)
    except Diverged:  # one candidate that blows up is no reason to stop: it is just the last
        return Trial(name, config.seed, 0.0, 1e30, 0, short)
    row = fitted.metrics
    return Trial(name, config.seed, row["val_accuracy"], row["val_loss"], len(fitted.history), short)
