"""--intervention: an intervention by its own name, or `auto` to have validation choose one."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .plan import Plan

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..evaluation.choice import Choice, Trial

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
        if options.resplit:
            raise InputError(
                "--resplit: --intervention auto chooses by one split's validation nodes; leave it out"
            )
        return
    from ..nn.interventions import catalogue

    try:
        catalogue.kinds(options.intervention)  # one, or several joined by a plus
    except InputError as error:
        raise InputError(f"--intervention {options.intervention}: {error}, or auto") from None
    options.model = f"cat-{LETTERS[options.strategy or 'implicit']}-{options.intervention}"


def chosen_plan(plan: Plan, data: "Data", options: argparse.Namespace) -> tuple[Plan, "Choice"]:
    """The plan with the model that validation chose, after telling how the candidates did."""
    from ..evaluation.choice import choose
    from ..nn.zoo import settings_of
    from ..training import config_from
    from .graph import split_of
    from .terminal import say, share

    def tell(trial: "Trial") -> None:
        if not (options.quiet or options.json):
            said = f"validation {share(trial.val_accuracy)}" if trial.epochs else "diverged"
            say(f"trying {trial.model}, seed {trial.seed}: {said}")

    split = split_of(data, plan.split, plan.seeds[0])
    config = config_from({**plan.train, "seed": plan.seeds[0]}, "settings")
    settings = {key: value for key, value in plan.model.items() if key != "name"}
    choice = choose(data, split, config, settings, on_trial=tell)
    kept = {key: value for key, value in settings.items() if key in settings_of(choice.model)}
    return replace(plan, model={"name": choice.model, **kept}), choice


def keep_choice(choice: "Choice", folder: Path) -> None:
    from ..training.runs.storage import write_atomically

    write_atomically(folder / FILE, (json.dumps(choice.to_dict(), indent=1, allow_nan=False) + "\n").encode())


def choice_text(choice: "Choice") -> str:
    """Every candidate with how often it was trained, best first."""
    from .terminal import share, table

    standing = {name: choice.standing(name) for name in choice.candidates}
    order = sorted(standing, key=lambda name: (-standing[name][0], -standing[name][1], standing[name][2]))
    order = [choice.model, *(name for name in order if name != choice.model)]
    lines: list[dict[str, Any]] = []
    for name in order:
        trainings, accuracy, loss = standing[name]
        lines.append(
            {"candidate": name, "trainings": trainings, "validation": share(accuracy), "loss": f"{loss:.3f}"}
        )
    head = f"--intervention auto chose {choice.model}; validation nodes alone were asked:"
    return f"{head}\n\n{table(lines, right=('trainings', 'validation', 'loss'))}\n"
