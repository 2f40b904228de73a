"""conjoint describe: how large a model is, and how much memory its training takes."""

import argparse

from ..errors import InputError
from ..nn.names import MODELS
from ..text import clean
from .output import answer, table


def work(options: argparse.Namespace) -> None:
    if options.model is None:
        rows = [{"model": name, "what it is": about} for name, about in MODELS.items()]
        answer(options, {"models": MODELS}, table(rows))
        return
    # Counting builds the model, so torch is imported; the list above is answered without.
    from ..selection.setting import check_settings
    from ..training.memory import describe
    from .plan import assignment, model_name, model_settings

    given = {name: value for name, value in vars(options).items() if value is not None}
    for name in ("nodes", "features", "classes"):
        if name not in given:
            raise InputError(f"describe {options.model}: --{name} is missing; give the size of the graph")
    settings = model_settings(given) | dict(assignment(text) for text in options.set or [])
    model = model_name(options.model)
    check_settings(model, settings)
    sizes = {name: getattr(options, name) for name in ("nodes", "edges", "features", "classes")}
    about = describe(model, **sizes, nonzeros=options.nonzeros, settings=settings)
    lines = [f"{clean(model)}: {about['parameters']} parameters"]
    lines += [f"  {count:>12}  {name}" for name, count in about["parameter_groups"].items()]
    memory = about["memory"]
    if memory is None:
        lines.append("memory: give --edges to have it predicted")
    else:
        lines.append(f"training takes about {_bytes(memory['training_bytes'])} above the loaded graph:")
        lines += [f"  {_bytes(size):>12}  {name}" for name, size in memory["parts"].items()]
        lines += [f"in batches (--batch {k}): about {_bytes(size)}" for k, size in memory["batches"].items()]
    answer(options, about, *lines)


def _bytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"
