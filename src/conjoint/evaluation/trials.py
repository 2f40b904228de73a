"""Trainings of candidates, and the choice that validation nodes make among them. Test nodes play no part."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import Diverged
from ..nn import zoo
from ..nn.model import NodeModel
from ..training import TrainConfig, fit
from .diagnosis import Diagnosis

OnEpoch = Callable[[dict[str, Any]], None]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
"""Entered for each training with its title and its epochs; what it gives is called after each epoch."""


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

    def standing(self, model: str) -> tuple[int, float, float]:
        """Trainings, and mean validation accuracy and loss: of those in full if it came so far."""
        own = [trial for trial in self.trials if trial.model == model]
        judged = [trial for trial in own if not trial.short] or own
        return len(own), fmean(t.val_accuracy for t in judged), fmean(t.val_loss for t in judged)

    def best_first(self, models: list[str]) -> list[str]:
        """By mean validation accuracy, ties by lower loss."""
        merit = {name: self.standing(name) for name in models}
        return sorted(models, key=lambda name: (-merit[name][1], merit[name][2]))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def blind(config: TrainConfig) -> TrainConfig:
    """The settings with a rule that does not look at test nodes."""
    return replace(config, rule="val-loss" if config.saw_test else config.rule, see_test=False)


def network(name: str, data: Data, seed: int, settings: Mapping[str, Any]) -> NodeModel:
    """A candidate for this graph. A setting that it does not know is left out."""
    known = zoo.settings_of(name)
    return zoo.build(
        name,
        features=int(data.x.size(1)),
        classes=len(getattr(data, "class_names", None) or []) or int(data.y.max()) + 1,
        num_nodes=int(data.num_nodes or 0),
        seed=seed,
        **{key: value for key, value in settings.items() if key in known},
    )


def attempt(
    name: str,
    data: Data,
    split: Split,
    config: TrainConfig,
    settings: Mapping[str, Any],
    short: bool = False,
    watch: Watch | None = None,
) -> Trial:
    """Train a candidate and look at the validation nodes."""
    model = network(name, data, config.seed, settings)
    watched = nullcontext() if watch is None else watch(f"trying {name} seed {config.seed}", config.epochs)
    try:
        with watched as show:
            fitted = fit(model, data, split, config, progress=show)
    except Diverged:  # one candidate that blows up is no reason to stop: it is just the last
        return Trial(name, config.seed, 0.0, 1e30, 0, short)
    row = fitted.metrics
    return Trial(name, config.seed, row["val_accuracy"], row["val_loss"], len(fitted.history), short)
