"""What to train: a network, its settings and those of training; and what is taken where nobody names one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..defaults import FALLBACK, MODEL, TRAIN
from ..errors import InputError
from ..nn.interventions import catalogue
from ..nn.zoo import settings_of
from ..training.config import TrainConfig, config_from

AUTO = "auto"
LETTERS = {"implicit": "i", "explicit": "e"}
# Only attention has heads, a strategy, a structural loss.
OF_ATTENTION = ("heads", "out_heads", "num_layers")


@dataclass(frozen=True)
class Setting:
    """One network with its settings and those of training.

    `undecided` says what validation nodes are still to choose: "recommended" (the default against its rival),
    "auto" (an intervention and a strategy), or nothing.
    """

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    batch: Mapping[str, Any] = field(default_factory=dict)
    undecided: str | None = None

    def config(self, seed: int) -> TrainConfig:
        return config_from({**self.train, "seed": seed}, "settings")

    def decided(self, model: str) -> "Setting":
        """With the model that was chosen, and those of the settings that it knows."""
        known = settings_of(model)
        kept = {name: value for name, value in self.settings.items() if name in known}
        return replace(self, model=model, settings=kept, undecided=None)

    def attention_instead(self) -> "Setting":
        """Where the recommended network does not fit: attention, trained as in the paper."""
        train = {name: value for name, value in self.train.items() if TRAIN.get(name) != value}
        return replace(self, model=FALLBACK, train=train, undecided=None)


def make_setting(
    model: str | None = None,
    *,
    intervention: str | None = None,
    strategy: str | None = None,
    settings: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    in_parts: bool = False,
    typed: str = "{}=",
) -> Setting:
    """The setting that these choices mean: the same for the command line, the estimators and `learn`.

    Args:
        model: a name of `conjoint describe`; None: the recommended one, or the paper's around `intervention`.
        intervention: in place of a model: a name, several joined by a plus, or "auto" (validation chooses).
        strategy: "implicit" (default) or "explicit", with an intervention.
        settings: of the network.
        train: of training; what is left out has the value that is recommended for the model.
        batch: of batches, see `BatchConfig`.
        in_parts: the graph is only seen in parts, which the recommended network cannot do.
        typed: how the user wrote an argument's name, for errors: "--{}" on the command line.
    """
    settings, train, batch = dict(settings or {}), dict(train or {}), dict(batch or {})
    given = typed.format
    if intervention is not None and model is not None:
        raise InputError(
            f"{given('intervention')} and {given('model')} {model}: the model names its own; give one of them"
        )
    if strategy is not None and intervention in (None, AUTO):
        if intervention is None:
            raise InputError(f"{given('strategy')} {strategy}: goes with {given('intervention')}; name one")
        raise InputError(
            f"{given('strategy')} {strategy}: {given('intervention')} auto tries both; leave it out"
        )
    if strategy is not None and strategy not in LETTERS:
        raise InputError(f"{given('strategy')} {strategy}: choose one of {', '.join(LETTERS)}")
    if intervention == AUTO:
        return _checked(Setting(FALLBACK, settings, train, batch, AUTO))
    if intervention is not None:
        try:
            catalogue.kinds(intervention)  # one, or several joined by a plus
        except InputError as error:
            raise InputError(f"{given('intervention')} {intervention}: {error}, or auto") from None
        model = f"cat-{LETTERS[strategy or 'implicit']}-{intervention}"
    parts = any(name != "kind" for name in batch) or batch.get("kind", "auto") not in ("auto", "full")
    attention = (
        parts or in_parts or "penalty_weight" in train or any(name in settings for name in OF_ATTENTION)
    )
    if model is None and not attention:
        return _checked(Setting(MODEL, settings, {**TRAIN, **train}, batch, "recommended"))
    return _checked(Setting(model or FALLBACK, settings, train, batch))


def _checked(setting: Setting) -> Setting:
    check_settings(setting.model, setting.settings)
    setting.config(0)
    return setting


def check_settings(model: str, settings: Mapping[str, Any]) -> None:
    """Each setting exists and is of its kind, told before anything is loaded or built."""
    known = settings_of(model)
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"{name}={value!r}: {model} has no such setting; it has {', '.join(known)}")
        usual = known[name]
        kind = (int, float) if usual is None or isinstance(usual, float) else (type(usual),)
        wrong = not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind)
        if wrong and not (usual is None and value is None):
            raise InputError(f"{name}={value!r}: expected a value like {usual!r}")
