"""conjoint describe: how large a model is, and how much memory its training takes."""

import argparse
from typing import Any

from ..errors import InputError
from ..nn.zoo import MODELS
from ..selection.setting import check_settings
from ..text import clean
from ..training.memory import describe
from .output import answer, table
from .plan import assignment, model_name, model_settings


def work(options: argparse.Namespace) -> None:
    if options.model is None:
        rows = [{"model": name, "what it is": about} for name, about in MODELS.items()]
        answer(options, {"models": MODELS}, table(rows))
        return
    given = {name: value for name, value in vars(options).items() if value is not None}
    for name in ("nodes", "features", "classes"):
        if name not in given:
            raise InputError(f"describe {options.model}: --{name} is missing; give the size of the graph")
    settings = model_settings(given) | dict(assignment(text) for text in options.set or [])
    model = model_name(options.model)
    check_settings(model, settings)
    sizes = {name: getattr(options, name) for name in ("nodes", "edges", "features", "classes")}
    about = describe(model, **sizes, nonzeros=options.nonzeros, settings=settings)
    groups = [f"  {count:>12}  {name}" for name, count in about["parameter_groups"].items()]
    answer(
        options,
        about,
        f"{clean(model)}: {about['parameters']} parameters",
        *groups,
        *_memory(about["memory"]),
    )


def _memory(memory: dict[str, Any] | None) -> list[str]:
    if memory is None:
        return ["memory: give --edges to have it predicted"]
    return [
        f"training takes about {_mebibytes(memory['training_bytes'])} above the loaded graph:",
        *(f"  {_mebibytes(size):>12}  {name}" for name, size in memory["parts"].items()),
        *(f"in batches (--batch {k}): about {_mebibytes(size)}" for k, size in memory["batches"].items()),
    ]


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"
