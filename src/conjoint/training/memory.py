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
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import kernels
from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import is_sparse, stored
from ..nn.model import NodeModel
from ..nn.zoo import build, settings_of
from .config import BATCH_KINDS, BatchConfig
from .sampling import metis_bytes
from .steps import FIELD_PAYS_BELOW

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


# Others live on the machine too, and a prediction is a prediction.
USABLE = 0.8


@dataclass(frozen=True)
class Way:
    """What a step of training computes, and the memory that it takes."""

    kind: str  # "full", "field", "clusters" or "neighbours"
    needed: int  # bytes
    available: int
    why: str
    must: bool = False  # the full graph does not fit

    def __str__(self) -> str:
        names = {"full": "on the full graph", "field": "on the receptive field of the training nodes"}
        where = names.get(self.kind, f"in batches of {self.kind}")
        return f"training {where}: about {readable(self.needed)} of {readable(self.available)} ({self.why})"


def readable(size: int) -> str:
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def available_memory() -> int:
    """Bytes that this process may still take: what the system has, within the limits of its control group."""
    found = [2**63]
    system = _read("/proc/meminfo").splitlines()
    found += [1024 * int(line.split()[1]) for line in system if line.startswith("MemAvailable:")]
    limit, used = _read("/sys/fs/cgroup/memory.max").strip(), _read("/sys/fs/cgroup/memory.current").strip()
    if limit.isdigit() and used.isdigit():
        found.append(max(0, int(limit) - int(used)))
    return min(found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def choose_way(
    model: str,
    settings: Mapping[str, Any],
    graph: Graph,
    train: npt.NDArray[Any],
    val: npt.NDArray[Any],
    *,
    available: int | None = None,
) -> Way:
    """What to train on: the full graph, the receptive field or batches, by the memory of each.

    The rule looks at sizes alone, so the same graph and machine give the same answer.
    """
    available = available_memory() if available is None else available
    usable = USABLE * available
    sizes = {"features": graph.num_features, "classes": max(2, graph.num_classes)}
    given = graph.given_x
    nonzeros = stored(given).numel() if isinstance(given, Tensor) and is_sparse(given) else None
    about = describe(
        model,
        nodes=graph.num_nodes,
        **sizes,
        edges=graph.num_edges // 2,
        nonzeros=nonzeros,
        settings=settings,
    )
    full = int(about["memory"]["training_bytes"])
    with torch.device("meta"):
        hops = build(model, **sizes, num_nodes=graph.num_nodes, **settings).reach
    if graph.folder is not None:  # it would have to be read into memory first
        full += FLOAT * graph.num_nodes * graph.num_features + 16 * graph.num_edges
    if hops is None:
        return Way("full", full, available, "this model needs all of it", full > usable)
    widths = layers({**settings_of(model), **settings}, sizes["classes"])
    fields = [field_size(graph, nodes, hops) for nodes in (train, val)]
    share = fields[0].work / (hops * (graph.num_edges + graph.num_nodes))
    parameters = int(about["parameters"])
    cut = max(
        training_memory(Sizes(f.nodes, f.entries, f.nodes * graph.num_features, parameters), *widths)[
            "training_bytes"
        ]
        for f in fields
    )
    if full <= usable:
        if share < FIELD_PAYS_BELOW:
            return Way("field", min(full, cut), available, f"{100 * share:.0f}% of the full graph's work")
        return Way("full", full, available, "it fits")
    if cut <= usable and graph.folder is None:
        return Way("field", cut, available, f"the full graph would take {readable(full)}", True)
    fits = metis_bytes(graph.num_nodes, graph.num_edges) <= usable
    batch = BatchConfig(kind="clusters" if fits else "neighbours")
    needed = batch_memory(
        batch, graph.num_nodes, graph.num_edges, graph.num_features, parameters, hops, widths
    )
    return Way(batch.kind, needed, available, f"the full graph would take {readable(full)}", True)


def describe_batches(
    model: str, *, nodes: int, edges: int, features: int, classes: int, settings: Mapping[str, Any]
) -> dict[str, int]:
    """Bytes that training takes by kind of batch, sizes as `BatchConfig` has them; none for some models."""
    chosen = {**settings_of(model), **settings}
    with torch.device("meta"):
        made = build(model, features=features, classes=classes, num_nodes=nodes, **settings)
    if made.reach is None:
        return {}
    parameters = sum(p.numel() for p in made.parameters())
    sizes = (nodes, 2 * edges, features, parameters, made.reach, layers(chosen, classes))
    return {kind: batch_memory(BatchConfig(kind=kind), *sizes) for kind in BATCH_KINDS}


@dataclass(frozen=True)
class FieldSize:
    nodes: int
    entries: int  # of the widest layer, self-loops included
    work: int  # entries of all layers


def field_size(graph: Graph, targets: npt.NDArray[Any], hops: int) -> FieldSize:
    """How much of the graph the logits of these nodes depend on, without making that part."""
    if isinstance(graph.edges, tuple):
        rowptr, col, loops = *graph.edges, 1
    else:  # the order that training needs anyway, self-loops included
        rowptr, col, loops = graph.adjacency.rowptr.numpy(), graph.adjacency.col.numpy(), 0
    reached = np.zeros(graph.num_nodes, dtype=bool)
    reached[targets] = True
    frontier, entries, work = np.asarray(targets), 0, 0
    for _ in range(hops):
        degree = rowptr[frontier + 1] - rowptr[frontier]
        entries += int((degree + loops).sum())
        work += entries
        places = np.arange(degree.sum()) + np.repeat(rowptr[frontier] - (np.cumsum(degree) - degree), degree)
        found = np.unique(col[places])
        frontier = found[~reached[found]].astype(np.int64)
        reached[frontier] = True
        graph.release()
    return FieldSize(int(reached.sum()), entries, work)


def batch_memory(
    config: BatchConfig,
    nodes: int,
    entries: int,
    features: int,
    parameters: int,
    hops: int,
    widths: tuple[list[int], list[int]],
) -> int:
    """Bytes that training in batches takes: what is kept per parameter and per node, and one batch."""
    mean = entries / max(1, nodes)
    if config.kind == "clusters":
        here, edges = float(config.nodes), config.nodes * (mean + 1)
    else:
        rings = [float(config.nodes)]
        for fanout in config.fanout_of(hops):
            rings.append(rings[-1] * min(fanout, mean))
        here, edges = sum(rings), sum(rings[:-1]) + sum(rings[1:])
    held = int(min(here, nodes))
    one = training_memory(Sizes(held, int(min(edges, entries + nodes)), held * features, 0), *widths)
    per_node = 8 + 8 + 8 + 1 + 8  # row pointers, labels, local numbers, training mask, orders of an epoch
    return int(PER_PARAMETER * FLOAT * parameters + per_node * nodes + one["training_bytes"])
