"""How large is a model, and how much memory will its training take? Answered without building it.

The prediction is for full-graph training on a CPU and counts what a step holds at its peak, above the loaded
graph: five numbers per parameter (weight, gradient, Adam's two moments, the best weights so far), and so many
numbers per node and unit, per entry and head, per entry, and per stored feature. An entry is one direction of
an edge, or a self-loop. How many was fitted to the measured growth of the process on graphs from Cora's size
to ogbn-arxiv's (docs/cli.md has the comparison). Small training sets, which allow working on a part of the
graph, need less; how many freed pieces the C library keeps is chance, most so for tensors of some megabytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .. import kernels
from ..errors import InputError
from ..nn.model import NodeModel
from ..nn.zoo import build, settings_of

FLOAT, INDEX = 4, 8  # bytes
PER_PARAMETER = 5


@dataclass(frozen=True)
class Costs:
    """Numbers held at the peak of a training step."""

    per_unit: float  # floats per node and unit of each layer's output
    per_head: float  # floats per entry and head of each layer
    per_entry: float  # indices per entry
    per_feature: float  # floats per stored feature: the normalised copy, the dropped copy
    overhead: int  # bytes, whatever the size


WITH_KERNELS = Costs(per_unit=4.9, per_head=4.6, per_entry=7.0, per_feature=2.2, overhead=2 * 2**20)
# Plain torch draws dropout masks from 64-bit counters and gathers rows, which takes several copies of each.
WITHOUT_KERNELS = Costs(per_unit=21, per_head=2.5, per_entry=52, per_feature=11, overhead=4 * 2**20)


def describe(
    model: str,
    *,
    nodes: int,
    features: int,
    classes: int,
    edges: int | None = None,
    nonzeros: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Parameter counts, and with `edges` (undirected) the predicted memory of training, in bytes.

    `nonzeros` is the number of stored features where they are sparse; None: they are dense.
    """
    for name, value in (("edges", edges), ("nonzeros", nonzeros)):
        if value is not None and value < 0:
            raise InputError(f"{name}={value}: give a whole number, 0 or more")
    chosen = {**settings_of(model), **(settings or {})}
    with torch.device("meta"):
        made = build(model, features=features, classes=classes, num_nodes=nodes, **dict(settings or {}))
    groups = parameter_groups(made)
    stored = nodes * features if nonzeros is None else 2 * nonzeros  # a sparse one has its column beside it
    sizes = Sizes(nodes, 2 * (edges or 0) + nodes, stored, sum(groups.values()))
    return {
        "model": model,
        "nodes": nodes,
        "features": features,
        "classes": classes,
        "edges": edges,
        "settings": chosen,
        "parameters": sum(groups.values()),
        "parameter_groups": groups,
        "memory": None if edges is None else training_memory(sizes, *layers(chosen, classes)),
    }


@dataclass(frozen=True)
class Sizes:
    nodes: int
    entries: int
    stored_features: int
    parameters: int


def layers(settings: Mapping[str, Any], classes: int) -> tuple[list[int], list[int]]:
    """Units and attention heads of each layer; models without attention weigh an edge once."""
    depth, heads = settings.get("num_layers", 2), settings.get("heads", 1)
    out_heads = settings.get("out_heads", 1)
    units = [heads * settings.get("hidden", classes)] * (depth - 1) + [out_heads * classes]
    return units, [heads] * (depth - 1) + [out_heads]


def training_memory(
    sizes: Sizes, units: list[int], heads: list[int], costs: Costs | None = None
) -> dict[str, Any]:
    """Bytes by cause, for the kernels as they are in this installation unless `costs` says otherwise."""
    active = bool(kernels.status()["active"])
    costs = costs or (WITH_KERNELS if active else WITHOUT_KERNELS)
    parts = {
        "weights, gradients, Adam, best weights": PER_PARAMETER * FLOAT * sizes.parameters,
        "activations per node": round(costs.per_unit * FLOAT * sizes.nodes * sum(units)),
        "attention per edge": round(costs.per_head * FLOAT * sizes.entries * sum(heads)),
        "the graph's order": round(costs.per_entry * INDEX * sizes.entries),
        "input features": round(costs.per_feature * FLOAT * sizes.stored_features),
        "overhead": costs.overhead,
    }
    return {"training_bytes": sum(parts.values()), "kernels": active, "parts": parts}


def parameter_groups(model: NodeModel) -> dict[str, int]:
    """Numbers of parameters by the part of the network that they belong to."""
    groups: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = _part(name)
        groups[part] = groups.get(part, 0) + parameter.numel()
    return groups


def _part(name: str) -> str:
    first, *rest = name.split(".")
    if first == "intervention":
        return "structural factors V"
    if rest and rest[0].isdigit():
        return f"{'normalisation' if first == 'norms' else 'layer'} {int(rest[0]) + 1}"
    return first
