"""What to train: a network, its settings and those of training; and what is taken where nobody names one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..defaults import FALLBACK
from ..errors import InputError
from ..nn.interventions import catalogue
from ..nn.zoo import ENSEMBLE, settings_of
from ..training.closed_form import as_they_are
from ..training.config import BALANCED, TrainConfig, config_from
from ..training.metrics import check_metric
from .members import MEMBERS, Budget

AUTO = "auto"
LETTERS = {"implicit": "i", "explicit": "e"}
# Only attention has heads, a strategy, a structural loss.
OF_ATTENTION = ("heads", "out_heads", "num_layers")


@dataclass(frozen=True)
class Setting:
    """One network with its settings and those of training.

    The model "ensemble" is what is learnt by default: `settings` and `train` then hold what was asked of all
    of its members, `search` how it is found. `undecided` says what validation nodes are still to choose:
    "auto" (an intervention and a strategy), or nothing.
    """

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    batch: Mapping[str, Any] = field(default_factory=dict)
    undecided: str | None = None
    search: Mapping[str, Any] = field(default_factory=dict)  # metric, minutes, trials, single

    @property
    def is_ensemble(self) -> bool:
        return self.model == ENSEMBLE

    def config(self, seed: int) -> TrainConfig:
        if self.is_ensemble:  # members have settings of their own, and read features by themselves
            return TrainConfig(epochs=1, row_normalise="never", seed=seed)
        return as_they_are(self.model, config_from({**self.train, "seed": seed}, "settings"))

    def decided(self, model: str) -> "Setting":
        """With the model that was chosen, and those of the settings that it knows."""
        known = settings_of(model)
        kept = {name: value for name, value in self.settings.items() if name in known}
        return replace(self, model=model, settings=kept, undecided=None)

    def within(self, minutes: float) -> "Setting":
        """With another limit of time; only an ensemble has one."""
        if not self.is_ensemble:
            raise InputError(
                f"--minutes {minutes:g}: goes with an ensemble, and this is a run of {self.model}"
            )
        return _checked(replace(self, search={**self.search, "minutes": minutes}))

    def attention_instead(self) -> "Setting":
        """Where the graph is too large for an ensemble: attention, trained as in the paper."""
        return replace(self, model=FALLBACK, undecided=None, search={})


def make_setting(
    model: str | None = None,
    *,
    intervention: str | None = None,
    strategy: str | None = None,
    settings: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    in_parts: bool = False,
    typed: str = "{}=",
) -> Setting:
    """The setting that these choices mean: the same for the command line, the estimators and `learn`.

    Args:
        model: a name of `conjoint describe`; None: an ensemble, or the paper's network around `intervention`.
        intervention: in place of a model: a name, several joined by a plus, or "auto" (validation chooses).
        strategy: "implicit" (default) or "explicit", with an intervention.
        settings: of the network.
        train: of training; what is left out has the value that is recommended for the model.
        batch: of batches, see `BatchConfig`.
        search: of an ensemble: metric, minutes, trials, single.
        in_parts: the graph is only seen in parts, which an ensemble cannot do.
        typed: how the user wrote an argument's name, for errors: "--{}" on the command line.
    """
    settings, train, batch, search = (dict(part or {}) for part in (settings, train, batch, search))
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
    if model == ENSEMBLE or (model is None and not attention):
        if "consistency" in train:
            raise InputError(f"{given('consistency')}: the members have their own; name a {given('model')}")
        if train.get("class_weight") == BALANCED:
            search.setdefault(
                "metric", "balanced-accuracy"
            )  # else weights would be judged by what they give up
        return _checked(Setting(ENSEMBLE, settings, train, batch, search=search))
    if search:
        name = next(iter(search))
        raise InputError(f"{given(name)}: goes with the default, an ensemble; leave out {given('model')}")
    return _checked(Setting(model or FALLBACK, settings, train, batch))


def _checked(setting: Setting) -> Setting:
    if setting.is_ensemble:
        config_from(setting.train, "settings")
        for name, value in setting.settings.items():
            check_value(name, value, known_settings(ENSEMBLE), "no member of the ensemble")
        Budget(setting.search.get("minutes"), setting.search.get("trials"))
        check_metric(setting.search.get("metric", "accuracy"))
        return setting
    check_settings(setting.model, setting.settings)
    setting.config(0)
    return setting


def known_settings(model: str) -> dict[str, Any]:
    """What may be set, with defaults: of an ensemble whatever a member knows."""
    names = [member.model for member in MEMBERS] if model == ENSEMBLE else [model]
    return {key: usual for name in names for key, usual in settings_of(name).items()}


def check_settings(model: str, settings: Mapping[str, Any]) -> None:
    """Each setting exists and is of its kind, told before anything is loaded or built."""
    for name, value in settings.items():
        check_value(name, value, settings_of(model), model)


def check_value(name: str, value: Any, known: Mapping[str, Any], model: str) -> None:
    if name not in known:
        raise InputError(f"{name}={value!r}: {model} has no such setting; it has {', '.join(known)}")
    usual = known[name]
    kind = (int, float) if usual is None or isinstance(usual, float) else (type(usual),)
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind)
    if wrong and not (usual is None and value is None):
        raise InputError(f"{name}={value!r}: expected a value like {usual!r}")
