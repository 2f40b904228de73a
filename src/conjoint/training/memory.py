"""How large is a model, how much memory does its training take, does it fit? Told without building it.

The prediction is for a CPU and counts what a step holds at its peak, above the loaded graph: five numbers per
parameter (weight, gradient, Adam's two moments, the best weights so far), and so many numbers per node and
unit, per entry and head, per entry, and per stored feature, each for what all passes of a step share and for
what every pass keeps until its gradient is made. An entry is one direction of an edge, or a self-loop. How
many was fitted to the measured growth of the process (docs/cli.md has the comparison). Small training sets,
which allow working on a part of the graph, need less; how many freed pieces the C library keeps is chance,
most so for tensors of some megabytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import kernels
from ..errors import check_whole
from ..graph.graph import Graph
from ..graph.sparse import is_sparse, stored
from ..nn.model import NodeModel
from ..nn.random_propagation import RandomPropagation
from ..nn.residual import ResidualCAT
from ..nn.zoo import build, settings_of
from .batches import metis_bytes
from .config import BATCH_KINDS, BatchConfig, Consistency
from .steps import FIELD_PAYS_BELOW

FLOAT, INDEX = 4, 8  # bytes
PER_PARAMETER = 5
PER_CLASS = 6  # floats per node, class and pass of the consistency term
USABLE = 0.8  # others live on the machine too, and a prediction is a prediction


class Held(NamedTuple):
    """Numbers that are held once, and that every pass adds."""

    once: float
    per_pass: float

    def by(self, passes: int) -> float:
        return self.once + self.per_pass * passes


@dataclass(frozen=True)
class Costs:
    """Numbers held at the peak of a training step."""

    per_unit: Held  # floats per node and unit of each layer's output
    per_head: Held  # floats per entry and head of each layer
    per_feature: Held  # floats per stored feature: the normalised copy, the dropped copy
    per_entry: float  # indices per entry
    per_propagated: float  # floats per node and propagated unit, beside one for every step of every pass
    overhead: int  # bytes, whatever the size


WITH_KERNELS = Costs(Held(1.5, 3.4), Held(2.7, 1.9), Held(1.2, 1.0), 7, 8, 2 * 2**20)
# Plain torch draws dropout masks from 64-bit counters and gathers rows, which takes several copies of each.
WITHOUT_KERNELS = Costs(Held(7, 8), Held(6, 6), Held(8, 1), 13, 0, 4 * 2**20)


class Network(NamedTuple):
    """What of a network its memory depends on."""

    units: list[int]  # of each layer's output
    heads: list[int]  # of each layer; models without attention weigh an edge once
    propagated: int = 0  # units that take `steps` along the edges
    steps: int = 0
    parameters: int = 0
    attends: bool = True  # its passes have weights of their own on the entries

    @staticmethod
    def of(made: NodeModel, settings: Mapping[str, Any], classes: int) -> "Network":
        depth, heads = settings.get("num_layers", 2), settings.get("heads", 1)
        out_heads = settings.get("out_heads", 1)
        parameters = sum(p.numel() for p in made.parameters())
        if isinstance(made, ResidualCAT):  # heads share its width; of its weights on entries half are kept
            units = [2 * settings["hidden"]] * depth + [3 * settings["hidden"]]
            return Network(units, [max(1, heads // 2)] * depth, parameters=parameters)
        units = [heads * settings.get("hidden", classes)] * (depth - 1) + [out_heads * classes]
        steps = settings.get("steps", settings.get("propagate", 0))
        propagated = units[0] if isinstance(made, RandomPropagation) else classes if steps else 0
        each = [heads] * (depth - 1) + [out_heads]
        return Network(units, each, propagated, steps, parameters, "heads" in settings)


class Sizes(NamedTuple):
    """Of the graph, or of the part of it that one step computes."""

    nodes: int
    entries: int
    stored_features: float


def training_memory(
    sizes: Sizes, network: Network, passes: int = 1, costs: Costs | None = None
) -> dict[str, Any]:
    """Bytes by cause, for the kernels as they are in this installation unless `costs` says otherwise."""
    active = bool(kernels.status()["active"])
    costs = costs or (WITH_KERNELS if active else WITHOUT_KERNELS)
    per_node = costs.per_unit.by(passes) * sum(network.units)
    per_node += network.propagated * (costs.per_propagated + passes * (network.steps + 1))
    per_node += PER_CLASS * passes * network.units[-1] if passes > 1 else 0
    per_head = costs.per_head.by(passes if network.attends else 1)
    parts = {
        "weights, gradients, Adam, best weights": PER_PARAMETER * FLOAT * network.parameters,
        "activations per node": round(FLOAT * sizes.nodes * per_node),
        "attention per edge": round(FLOAT * sizes.entries * per_head * sum(network.heads)),
        "the graph's order": round(INDEX * costs.per_entry * sizes.entries),
        "input features": round(FLOAT * costs.per_feature.by(passes) * sizes.stored_features),
        "overhead": costs.overhead,
    }
    return {"training_bytes": sum(parts.values()), "kernels": active, "parts": parts}


def describe(
    model: str,
    *,
    nodes: int,
    features: int,
    classes: int,
    edges: int | None = None,
    nonzeros: int | None = None,
    settings: Mapping[str, Any] | None = None,
    passes: int = 1,
) -> dict[str, Any]:
    """Parameter counts, and with `edges` (undirected) the predicted memory of training, in bytes.

    With it comes that of training in batches, by their kind, for models that can be trained so.

    `nonzeros` is the number of stored features where they are sparse; None: they are dense. `passes` is that
    of the consistency term.
    """
    for name, value in (("edges", edges), ("nonzeros", nonzeros)):
        if value is not None:
            check_whole(name, value, 0)
    made, chosen, network = _unbuilt(model, nodes, features, classes, settings or {})
    memory = None
    if edges is not None:
        full = Sizes(nodes, 2 * edges + nodes, _stored(nodes, features, nonzeros))
        cut = Sizes(nodes, 2 * edges, nodes * features)
        kinds = () if made.reach is None else BATCH_KINDS
        batches = {kind: batch_memory(BatchConfig(kind=kind), cut, network) for kind in kinds}
        memory = training_memory(full, network, passes) | {"batches": batches}
    return {
        "model": model,
        "nodes": nodes,
        "features": features,
        "classes": classes,
        "edges": edges,
        "settings": chosen,
        "parameters": network.parameters,
        "parameter_groups": parameter_groups(made),
        "memory": memory,
    }


def _unbuilt(
    model: str, nodes: int, features: int, classes: int, settings: Mapping[str, Any]
) -> tuple[NodeModel, dict[str, Any], Network]:
    """The model without memory for its weights, all of its settings, and what its memory depends on."""
    with torch.device("meta"):
        made = build(model, features=features, classes=classes, num_nodes=nodes, **settings)
    chosen = {**settings_of(model), **settings}
    return made, chosen, Network.of(made, chosen, classes)


def _stored(nodes: int, features: int, nonzeros: int | None) -> int:
    return nodes * features if nonzeros is None else 2 * nonzeros  # a sparse one has its column beside it


def parameter_groups(model: NodeModel) -> dict[str, int]:
    """Numbers of parameters by the part of the network that they belong to."""
    groups: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part, *rest = name.split(".")
        if part == "intervention":
            part = "structural factors V"
        elif rest and rest[0].isdigit():
            part = f"{'normalisation' if part == 'norms' else 'layer'} {int(rest[0]) + 1}"
        groups[part] = groups.get(part, 0) + parameter.numel()
    return groups


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


def full_memory(model: str, settings: Mapping[str, Any], graph: Graph, passes: int = 1) -> int:
    """Bytes of training a model on the full graph."""
    sizes = (graph.num_nodes, graph.num_features, max(2, graph.num_classes))
    return _full(graph, _unbuilt(model, *sizes, settings)[2], passes)[1]


def _full(graph: Graph, network: Network, passes: int) -> tuple[Sizes, int]:
    """Sizes of the full graph, and the bytes of a training on it."""
    nodes, features, given = graph.num_nodes, graph.num_features, graph.given_x
    nonzeros = stored(given).numel() if isinstance(given, Tensor) and is_sparse(given) else None
    sizes = Sizes(nodes, graph.num_edges + nodes, _stored(nodes, features, nonzeros))
    full = int(training_memory(sizes, network, passes)["training_bytes"])
    if graph.folder is not None:  # it would have to be read into memory first
        full += FLOAT * nodes * features + 2 * INDEX * graph.num_edges
    return sizes, full


def choose_way(
    model: str,
    settings: Mapping[str, Any],
    graph: Graph,
    train: npt.NDArray[Any],
    val: npt.NDArray[Any],
    *,
    consistency: Consistency | None = None,
    available: int | None = None,
) -> Way:
    """What to train on: the full graph, the receptive field or batches, by the memory of each.

    The rule looks at sizes alone, so the same graph and machine give the same answer.
    """
    available = available_memory() if available is None else available
    usable, passes = USABLE * available, 1 if consistency is None else consistency.passes
    nodes, features = graph.num_nodes, graph.num_features
    made, _, network = _unbuilt(model, nodes, features, max(2, graph.num_classes), settings)
    sizes, full = _full(graph, network, passes)
    if made.reach is None:
        return Way("full", full, available, "this model needs all of it", full > usable)
    if consistency is not None and consistency.sample == 0 and full <= usable:
        return Way("full", full, available, "all of its nodes must be consistent")
    fields = [field_size(graph, targets, made.reach) for targets in (train, val)]
    share = fields[0].work / (made.reach * sizes.entries)
    parts = [Sizes(f.nodes, f.entries, sizes.stored_features * f.nodes / nodes) for f in fields]
    cut = max(int(training_memory(part, network, passes)["training_bytes"]) for part in parts)
    if full <= usable:
        if share < FIELD_PAYS_BELOW:
            return Way("field", min(full, cut), available, f"{100 * share:.0f}% of the full graph's work")
        return Way("full", full, available, "it fits")
    why = f"the full graph would take {readable(full)}"
    if cut <= usable and graph.folder is None:
        return Way("field", cut, available, why, True)
    batch = BatchConfig(kind="clusters" if metis_bytes(nodes, graph.num_edges) <= usable else "neighbours")
    whole = Sizes(nodes, graph.num_edges, nodes * features)
    return Way(batch.kind, batch_memory(batch, whole, network), available, why, True)


class FieldSize(NamedTuple):
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


def batch_memory(config: BatchConfig, graph: Sizes, network: Network) -> int:
    """Bytes that training in batches takes: what is kept per parameter and per node, and one batch."""
    mean = graph.entries / max(1, graph.nodes)
    if config.kind == "clusters":
        here, edges = float(config.nodes), config.nodes * (mean + 1)
    else:
        rings = [float(config.nodes)]
        for fanout in config.fanout_of(len(network.units)):
            rings.append(rings[-1] * min(fanout, mean))
        here, edges = sum(rings), sum(rings[:-1]) + sum(rings[1:])
    held = int(min(here, graph.nodes))
    features = held * graph.stored_features / max(1, graph.nodes)
    one = training_memory(Sizes(held, int(min(edges, graph.entries + graph.nodes)), features), network)
    per_node = 8 + 8 + 8 + 1 + 8  # row pointers, labels, local numbers, training mask, orders of an epoch
    return int(per_node * graph.nodes + one["training_bytes"])
