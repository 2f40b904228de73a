"""What validation chooses: the intervention with `--intervention auto`, or which network is recommended."""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import recommended
from ..errors import InputError
from .plan import Plan
from .progress import progress
from .terminal import clean, say, share, table

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..data.splits import Split
    from ..evaluation.trials import Choice, Trial, Watch
    from ..training import TrainConfig

FILE = "choice.json"
LETTERS = {"implicit": "i", "explicit": "e"}


def name_model(options: argparse.Namespace) -> None:
    """Turn --intervention NAME --strategy WORD into the model that they mean; `auto` is left for later."""
    if options.intervention is None:
        if options.strategy is not None:
            raise InputError(
                f"--strategy {options.strategy}: goes with --intervention; or name it in --model"
            )
        return
    if options.model is not None:
        raise InputError(
            f"--intervention and --model {options.model}: the model names its own; give one of them"
        )
    if options.intervention == "auto":
        if options.strategy is not None:
            raise InputError("--strategy: --intervention auto tries both; leave it out")
        return
    from ..nn.interventions import catalogue

    try:
        catalogue.kinds(options.intervention)  # one, or several joined by a plus
    except InputError as error:
        raise InputError(f"--intervention {options.intervention}: {error}, or auto") from None
    options.model = f"cat-{LETTERS[options.strategy or 'implicit']}-{options.intervention}"


def check_split(plan: Plan, options: argparse.Namespace) -> None:
    if options.intervention == "auto" and plan.split.get("resplit"):
        raise InputError(
            "--resplit: --intervention auto chooses by one split's validation nodes; leave it out"
        )


def chosen_plan(plan: Plan, data: "Data", options: argparse.Namespace) -> tuple[Plan, "Choice | None"]:
    """The plan with what validation chose, if it was asked, after telling how the candidates did."""
    from ..nn.zoo import settings_of
    from ..training import config_from
    from .graph import split_of

    resplit = plan.split.get("resplit")  # then a seed's validation nodes are another's test nodes
    if options.intervention != "auto" and (resplit or not plan.recommended):
        return plan, None
    given = Given(
        data,
        split_of(data, plan.split, plan.seeds[0]),
        config_from({**plan.train, "seed": plan.seeds[0]}, "settings"),
        {key: value for key, value in plan.model.items() if key != "name"},
    )
    choice = _recommended(given, options) if plan.recommended else _intervention(given, options)
    kept = {key: value for key, value in given.settings.items() if key in settings_of(choice.model)}
    return replace(plan, model={"name": choice.model, **kept}), choice


class Given(NamedTuple):
    """What every candidate is trained with, in the order of the functions that choose."""

    data: "Data"
    split: "Split"
    config: "TrainConfig"
    settings: dict[str, Any]


def _intervention(given: Given, options: argparse.Namespace) -> "Choice":
    from ..evaluation.choice import choose

    return choose(*given, on_trial=_teller(options), watch=_watch(given, options))


def _recommended(given: Given, options: argparse.Namespace) -> "Choice":
    from ..evaluation.rivals import compare

    return compare(*given, on_trial=_teller(options), watch=_watch(given, options))


DOUBT = "Many edges join nodes no more alike than random pairs, be it the edges' fault or the features'."
GATE = "Whether each feature should have a weight of its own depends on the graph."


def _teller(options: argparse.Namespace) -> "Callable[[Trial], None] | None":
    """Says how a training did; nothing where output is to be quiet."""

    def tell(trial: "Trial") -> None:
        said = f"validation {share(trial.val_accuracy)}" if trial.epochs else "diverged"
        say(f"trying {trial.model}, seed {trial.seed}: {said}")

    return None if options.quiet or options.json else tell


def _watch(given: Given, options: argparse.Namespace) -> "Watch":
    return lambda title, epochs: progress(clean(f"{given.data.name} {title}"), epochs, options.quiet)


def keep_choice(choice: "Choice", folder: Path) -> None:
    from ..training.runs.storage import write_atomically

    write_atomically(folder / FILE, (json.dumps(choice.to_dict(), indent=1, allow_nan=False) + "\n").encode())


def choice_text(choice: "Choice") -> str:
    """Every candidate with how often it was trained, best first."""
    standing = {name: choice.standing(name) for name in choice.candidates}
    order = sorted(standing, key=lambda name: (-standing[name][0], -standing[name][1], standing[name][2]))
    order = [choice.model, *(name for name in order if name != choice.model)]
    lines: list[dict[str, Any]] = []
    for name in order:
        trainings, accuracy, loss = standing[name]
        lines.append(
            {"candidate": name, "trainings": trainings, "validation": share(accuracy), "loss": f"{loss:.3f}"}
        )
    if choice.diagnosis is not None:
        head = f"--intervention auto chose {choice.model}; validation nodes alone were asked:"
    else:
        why = DOUBT if choice.candidates == recommended.IF_DOUBTED else GATE
        head = f"{why} Validation nodes chose {choice.model}:"
    return f"{head}\n\n{table(lines, right=('trainings', 'validation', 'loss'))}\n"
