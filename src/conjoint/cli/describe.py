"""conjoint describe: how large a model is, and how much memory its training takes."""

import argparse

from .parser import add_output_options, whole_number
from .train import add_model_options

SUMMARY = "parameter counts and memory of a model, before training it"
DESCRIPTION = """\
Count the parameters of a model for a graph of a given size, and predict the memory that
its training takes on a CPU. Nothing of that size is built. Without MODEL: the list of
all models."""

EXAMPLES = """\
examples:
  conjoint describe
  conjoint describe cat-i-mf --nodes 2708 --features 1433 --classes 7
  conjoint describe cat-e-sc --nodes 19717 --features 500 --classes 3 --edges 44324 --hidden 16 --json
  conjoint describe cat-i-mf --nodes 169343 --features 128 --classes 40 --edges 1157799 \\
      --variant ogbn-arxiv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a name from `conjoint describe`")
    parser.add_argument("--nodes", type=whole_number, metavar="N", help="nodes of the graph")
    parser.add_argument("--features", type=whole_number, metavar="D", help="input features of a node")
    parser.add_argument("--classes", type=whole_number, metavar="C", help="number of classes")
    parser.add_argument("--edges", type=whole_number, metavar="E", help="undirected edges; for the memory")
    parser.add_argument(
        "--nonzeros", type=whole_number, metavar="Z", help="stored features, if sparse; default: all (dense)"
    )
    add_model_options(parser, named=False)
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    from ..errors import InputError
    from ..evaluation.memory import describe
    from .plan import assignment, check_settings, model_name, model_settings
    from .terminal import clean, print_json

    if options.model is None:
        _list_models(options.json)
        return
    for name in ("nodes", "features", "classes"):
        if getattr(options, name) is None:
            raise InputError(f"describe {options.model}: --{name} is missing; give the size of the graph")
    settings = model_settings({name: value for name, value in vars(options).items() if value is not None})
    settings |= dict(assignment(text) for text in options.set or [])
    model = model_name(options.model)
    check_settings(model, settings)
    about = describe(
        model,
        nodes=options.nodes,
        features=options.features,
        classes=options.classes,
        edges=options.edges,
        nonzeros=options.nonzeros,
        settings=settings,
    )
    if about["memory"] is not None:
        from ..scale.choice import describe_batches

        sizes = {name: getattr(options, name) for name in ("nodes", "edges", "features", "classes")}
        about["memory"]["batches"] = describe_batches(model, **sizes, settings=settings)
    if options.json:
        print_json(about)
        return
    print(f"{clean(model)}: {about['parameters']} parameters")
    for name, count in about["parameter_groups"].items():
        print(f"  {count:>12}  {name}")
    memory = about["memory"]
    if memory is None:
        print("memory: give --edges to have it predicted")
        return
    print(f"training takes about {_mebibytes(memory['training_bytes'])} above the loaded graph:")
    for name, size in memory["parts"].items():
        print(f"  {_mebibytes(size):>12}  {name}")
    for kind, size in memory["batches"].items():
        print(f"in batches (--batch {kind}): about {_mebibytes(size)}")


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"


def _list_models(as_json: bool) -> None:
    from ..nn.zoo import MODELS
    from .terminal import print_json, table

    if as_json:
        print_json({"models": MODELS})
    else:
        print(table([{"model": name, "what it is": about} for name, about in MODELS.items()]))
