"""Which network to train, told by validation nodes alone: candidates in, trainings judged, one out.

The trainings that were done to choose are kept: the winner is not trained again. Test nodes play no part.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from ..errors import Diverged, InputError
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..nn import zoo
from ..nn.model import NodeModel
from ..nn.names import MODELS
from ..training import Fitted, TrainConfig, fit
from .diagnosis import STRATEGIES, Diagnosis, diagnose, shortlist
from .setting import AUTO

OnEpoch = Callable[[dict[str, Any]], object]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
"""Entered for each training with its title and its epochs; what it gives is called after each epoch."""

SHORT_ROUNDS = 2  # each with a seed of its own; after each, the better half goes on
FULL = 2  # trainings of each that is left
SHORT_EPOCHS, SHORT_PATIENCE = 200, 50


@dataclass(frozen=True)
class Trial:
    """One training of one candidate. One that diverged has no epochs."""

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
    diagnosis: Diagnosis | None = None  # if that named the candidates
    fitted: Mapping[int, tuple[Fitted, float]] = field(default_factory=dict, compare=False, repr=False)
    """Finished trainings of the chosen model, exactly as asked for, and their seconds; by seed."""

    def standing(self, model: str) -> tuple[int, float, float]:
        """Trainings, and mean validation accuracy and loss: of those in full if it came so far."""
        return _standing(model, self.trials)

    def to_dict(self) -> dict[str, Any]:
        """All but the trainings themselves."""
        parts = asdict(replace(self, fitted={}))
        return {name: part for name, part in parts.items() if name != "fitted"}


def _standing(model: str, trials: Sequence[Trial]) -> tuple[int, float, float]:
    own = [trial for trial in trials if trial.model == model]
    judged = [trial for trial in own if not trial.short] or own
    return len(own), fmean(t.val_accuracy for t in judged), fmean(t.val_loss for t in judged)


class Contest:
    """Trains candidates on one graph and split, and remembers how each did."""

    def __init__(
        self,
        data: Graph,
        split: Split,
        config: TrainConfig,
        settings: Mapping[str, Any] | None,
        on_trial: Callable[[Trial], None] | None,
        watch: Watch | None,
        known: Sequence[Trial] = (),
    ) -> None:
        self.graph, self.split, self.settings = as_graph(data), split, settings or {}
        # No candidate chooses its epoch by test nodes.
        self.config = config.blind()
        self.reusable = self.config == config
        self.on_trial, self.watch = on_trial, watch
        self.known = {(trial.model, trial.seed, trial.short): trial for trial in known}
        self.trials: list[Trial] = []
        self.fitted: dict[tuple[str, int], tuple[Fitted, float]] = {}

    def attempt(self, name: str, seed: int, short: bool = False) -> None:
        """Train a candidate and look at the validation nodes; one that was judged before is not trained."""
        if (name, seed, short) in self.known:
            self.trials.append(self.known[name, seed, short])
            return
        config = replace(self.config, seed=seed)
        if short:
            patience = min(config.patience or SHORT_PATIENCE, SHORT_PATIENCE)
            config = replace(config, epochs=min(config.epochs, SHORT_EPOCHS), patience=patience)
        started = time.perf_counter()
        try:
            fitted = train_candidate(name, self.graph, self.split, config, self.settings, self.watch)
            row = fitted.metrics
            trial = Trial(name, seed, row["val_accuracy"], row["val_loss"], len(fitted.history), short)
            if not short:
                self.fitted[name, seed] = fitted, time.perf_counter() - started
        except Diverged:  # one candidate that blows up is no reason to stop: it is just the last
            trial = Trial(name, seed, 0.0, 1e30, 0, short)
        self.trials.append(trial)
        if self.on_trial is not None:
            self.on_trial(trial)

    def best_first(self, models: Sequence[str]) -> list[str]:
        """By mean validation accuracy, ties by lower loss."""
        merit = {name: _standing(name, self.trials) for name in models}
        return sorted(models, key=lambda name: (-merit[name][1], merit[name][2]))

    def choice(self, model: str, candidates: Sequence[str], found: Diagnosis | None = None) -> Choice:
        kept = {seed: fitted for (name, seed), fitted in self.fitted.items() if name == model}
        return Choice(model, tuple(candidates), tuple(self.trials), found, kept if self.reusable else {})


def train_candidate(
    name: str,
    graph: Graph,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any],
    watch: Watch | None,
) -> Fitted:
    model, title = network(name, graph, config.seed, settings), f"trying {name} seed {config.seed}"
    with nullcontext() if watch is None else watch(title, config.epochs) as show:
        return fit(model, graph, split, config, progress=show)


def network(name: str, graph: Graph, seed: int, settings: Mapping[str, Any]) -> NodeModel:
    """The model called `name` for this graph. A setting that it does not know is left out."""
    known = zoo.settings_of(name)
    return zoo.build(
        name,
        features=graph.num_features,
        classes=graph.num_classes,
        num_nodes=graph.num_nodes,
        seed=seed,
        **{key: value for key, value in settings.items() if key in known},
    )


def choose_intervention(
    data: Graph,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any] | None = None,
    *,
    on_trial: Callable[[Trial], None] | None = None,
    watch: Watch | None = None,
    known: Sequence[Trial] = (),
) -> Choice:
    """The intervention and strategy with the highest mean validation accuracy, ties by lower loss.

    A diagnosis, which sees training labels alone, shortlists. Short trainings come first. Those that are left
    after two rounds are trained in full, as some learn slowly and end well, with the seed that was asked for
    and the next: one training of one seed says little about a point or two.

    Args:
        config: of the training to come; no trial chooses an epoch by test nodes.
        settings: of the network; a candidate that does not know one goes without it.
        on_trial: called after each training.
        watch: looks on while one runs, for a progress bar.
        known: trainings of an earlier call with the same arguments, which are not done again.
    """
    contest = Contest(data, split, config, settings, on_trial, watch, known)
    found = diagnose(contest.graph, split.train, seed=config.seed)
    candidates = candidates_of(shortlist(found))
    left = candidates
    for seeds, short in [*(([number], True) for number in range(SHORT_ROUNDS)), (range(FULL), False)]:
        for name in left:
            for number in seeds:
                contest.attempt(name, config.seed + number, short)
        left = contest.best_first(left)[: max(1, (len(left) + 1) // 2)]
    if not any(trial.epochs for trial in contest.trials if trial.model == left[0]):
        raise InputError(f"auto: every candidate diverged with lr={config.lr}; try a smaller one")
    return contest.choice(left[0], candidates, found)


def candidates_of(interventions: Sequence[str]) -> list[str]:
    """Both strategies of each intervention, as names of models."""
    names = [f"cat-{letter}-{name}" for name in interventions for letter in STRATEGIES]
    return [name for name in names if name in MODELS]


CHOOSE: dict[str, Callable[..., Choice]] = {
    AUTO: choose_intervention,
}
