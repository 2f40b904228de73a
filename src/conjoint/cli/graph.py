"""From a plan to the graph, its split and the shape of the model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .plan import Plan, check_settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..data.splits import Split
    from ..store import StoredGraph
    from ..training.runs import ModelSpec

BENCHMARK_SETTINGS = ("name", "root", "source", "features")


def load_graph(plan: Plan) -> "Data":
    """The graph of the plan, with the features and edges that its model reads."""
    from ..nn.zoo import input_graph

    name, settings = model_of(plan)
    check_settings(name, settings)
    return input_graph(name, _load(dict(plan.data)), **settings)


def _load(options: dict[str, Any]) -> "Data":
    from ..data import load, read_graph

    if "folder" in options:
        from ..store import open_graph, to_data

        return to_data(open_graph(options["folder"]))
    try:
        if "edges" in options:
            return read_graph(**options)
        for key in options:
            if key not in BENCHMARK_SETTINGS:
                raise InputError(
                    f"{key}={options[key]!r} describes your own files; leave it out for {options['name']}"
                )
        return load(options.pop("name"), **options)
    except TypeError as error:
        if "keyword argument" not in str(error):
            raise
        raise InputError(f"[data]: {str(error).split('() ')[-1]}; see `conjoint train --help`") from None


def load_stored(plan: Plan) -> "StoredGraph":
    """The graph as arrays: mapped from its folder, or taken from what `load_graph` reads."""
    from ..nn.zoo import settings_of
    from ..store import open_graph, stored_from

    name, settings = model_of(plan)
    check_settings(name, settings)
    if "folder" not in plan.data:
        return stored_from(load_graph(plan))
    if "embedding_seed" in settings_of(name):
        raise InputError(
            f"--model {name}: it joins an embedding of the whole graph; use another for a folder"
        )
    return open_graph(plan.data["folder"])


def split_of(data: "Data | StoredGraph", split: Mapping[str, Any], run_seed: int) -> "Split":
    """The plan's split; with `resplit`, a new one for each seed of the training."""
    from ..data import make_split

    options = dict(split)
    if options.pop("resplit", False):
        options["seed"] = run_seed
    name = options.pop("name", None) or _rule_with(options) or usual_split(data)
    return make_split(data, name, **options)


def _rule_with(options: Mapping[str, Any]) -> str | None:
    """The rule whose own options were given."""
    for option in options:
        if option in OWN_OPTIONS:
            return OWN_OPTIONS[option]
    return None


OWN_OPTIONS = {
    "train_per_class": "per-class",
    "num_val": "per-class",
    "num_test": "per-class",
    "train": "fraction",
    "val": "fraction",
    "train_until": "time",
    "val_until": "time",
}


def usual_split(data: "Data | StoredGraph") -> str:
    """What came with the data; else the paper's recipe where there are labels enough for it; else shares."""
    known = getattr(data, "known_splits", None) or {}
    for published in ("given", "time"):
        if published in known:
            return published
    labelled = data.y[data.y >= 0]
    counts = labelled.bincount()
    counts = counts[counts > 0]
    enough = len(labelled) >= 20 * len(counts) + 1500 and bool((counts >= 20).all())
    return "per-class" if enough else "fraction"


def model_of(plan: Plan) -> tuple[str, dict[str, Any]]:
    settings = dict(plan.model)
    return str(settings.pop("name")), settings


def spec_of(plan: Plan, data: "Data") -> "ModelSpec":
    from ..training.runs import ModelSpec

    name, settings = model_of(plan)
    classes = len(getattr(data, "class_names", None) or []) or int(data.y.max()) + 1
    return ModelSpec(name, int(data.x.size(1)), classes, int(data.num_nodes), settings)


def device_named(name: str) -> str:
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"--device {name}: not usable here ({reason}); use --device cpu") from None
    return name
