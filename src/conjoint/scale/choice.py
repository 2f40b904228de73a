"""Full graph, receptive field or batches: chosen from the memory that each would take and that there is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..evaluation.memory import FLOAT, PER_PARAMETER, Sizes, describe, layers, training_memory
from ..nn.zoo import build, settings_of
from ..store import StoredGraph
from ..training.inputs import FIELD_PAYS_BELOW
from .clusters import metis_bytes
from .config import KINDS, BatchConfig
from .sampling import ALL, draw

# Others live on the machine too, and a prediction is a prediction.
USABLE = 0.8


@dataclass(frozen=True)
class Choice:
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


def choose(
    model: str,
    settings: Mapping[str, Any],
    graph: StoredGraph,
    train: npt.NDArray[Any],
    val: npt.NDArray[Any],
    *,
    available: int | None = None,
) -> Choice:
    """What to train on. The rule looks at sizes alone, so the same graph and machine give the same choice."""
    available = available_memory() if available is None else available
    usable = USABLE * available
    classes = max(2, len(graph.class_names) or int(graph.y.max()) + 1)
    sparse = isinstance(graph.x, Tensor) and graph.x.layout == torch.sparse_csr
    nonzeros = graph.x.values().numel() if isinstance(graph.x, Tensor) and sparse else None
    about = describe(
        model,
        nodes=graph.num_nodes,
        features=graph.num_features,
        classes=classes,
        edges=graph.num_entries // 2,
        nonzeros=nonzeros,
        settings=settings,
    )
    full = int(about["memory"]["training_bytes"])
    with torch.device("meta"):
        sizes = {"features": graph.num_features, "classes": classes, "num_nodes": graph.num_nodes}
        reach = build(model, **sizes, **settings).reach
    if graph.folder is not None:  # it would have to be read into memory first
        full += FLOAT * graph.num_nodes * graph.num_features + 16 * graph.num_entries
    if reach is None:
        return Choice("full", full, available, "this model needs all of it", full > usable)
    hops = reach
    widths = layers({**settings_of(model), **settings}, classes)
    fields = [field_size(graph, nodes, hops) for nodes in (train, val)]
    share = fields[0].work / (hops * (graph.num_entries + graph.num_nodes))
    parameters = int(about["parameters"])
    cut = max(
        training_memory(Sizes(f.nodes, f.entries, f.nodes * graph.num_features, parameters), *widths)[
            "training_bytes"
        ]
        for f in fields
    )
    if full <= usable:
        if share < FIELD_PAYS_BELOW:
            return Choice("field", min(full, cut), available, f"{100 * share:.0f}% of the full graph's work")
        return Choice("full", full, available, "it fits")
    if cut <= usable and graph.folder is None:
        return Choice("field", cut, available, f"the full graph would take {readable(full)}", True)
    kind = "clusters" if metis_bytes(graph) <= usable else "neighbours"
    needed = batch_memory(
        BatchConfig(kind=kind),
        graph.num_nodes,
        graph.num_entries,
        graph.num_features,
        parameters,
        hops,
        widths,
    )
    return Choice(kind, needed, available, f"the full graph would take {readable(full)}", True)


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
    return {kind: batch_memory(BatchConfig(kind=kind), *sizes) for kind in KINDS}


@dataclass(frozen=True)
class FieldSize:
    nodes: int
    entries: int  # of the widest layer, self-loops included
    work: int  # entries of all layers


def field_size(graph: StoredGraph, targets: npt.NDArray[Any], hops: int) -> FieldSize:
    """How much of the graph the logits of these nodes depend on, without making that part."""
    reached = np.zeros(graph.num_nodes, dtype=bool)
    reached[targets] = True
    frontier, entries, work = np.asarray(targets), 0, 0
    for _ in range(hops):
        entries += int((graph.degree[frontier] + 1).sum())
        work += entries
        found = np.unique(draw(graph, frontier, ALL, None).col)
        frontier = found[~reached[found]]
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
        here, heard = float(config.nodes), config.nodes * (mean + 1)
    else:
        rings = [float(config.nodes)]
        for fanout in config.fanout_of(hops):
            rings.append(rings[-1] * min(fanout, mean))
        here, heard = sum(rings), sum(rings[:-1]) + sum(rings[1:])
    held = int(min(here, nodes))
    one = training_memory(Sizes(held, int(min(heard, entries + nodes)), held * features, 0), *widths)
    per_node = 8 + 8 + 8 + 1 + 8  # row pointers, labels, local numbers, training mask, orders of an epoch
    return int(PER_PARAMETER * FLOAT * parameters + per_node * nodes + one["training_bytes"])
