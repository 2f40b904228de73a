"""A training in batches small enough for one process or many to run in a second."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split, build_split
from conjoint.nn.zoo import build
from conjoint.training import BatchConfig, Ranks, Run, TrainConfig, fit
from graphs import random_graph

NODES, FEATURES, CLASSES = 150, 8, 3
CONFIG = TrainConfig(epochs=4, patience=0, lr=0.02)


def graph_and_split() -> tuple[Graph, Split]:
    rng = np.random.default_rng(0)
    y = np.arange(NODES) % CLASSES
    x = rng.normal(size=(NODES, FEATURES)) + (np.arange(FEATURES)[None] % CLASSES == y[:, None])
    edges, _ = random_graph(NODES, 400, seed=1)
    data = Graph(torch.from_numpy(x).float(), torch.from_numpy(y), edges)
    order = rng.permutation(NODES)
    return data, build_split(order[:60], order[60:100], order[100:], labels=y, name="small")


def train(
    ranks: Ranks,
    kind: str = "neighbours",
    *,
    graph: Graph | None = None,
    run: Run | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
    config: TrainConfig = CONFIG,
    **settings: Any,
) -> dict[str, torch.Tensor]:
    """The weights that were kept (rank 0) or that were last (the others)."""
    data, split = graph_and_split()
    sizes = {"features": FEATURES, "classes": CLASSES, "num_nodes": NODES}
    network = build("cat-i-mf", **sizes, seed=0, hidden=4, heads=2, **settings)
    size = 15 if kind == "neighbours" else 40
    batch = BatchConfig(kind=kind, size=size, joined=3, fanout=(4, 3), per_step=4, penalty_neighbours=4)
    fit(network, graph or data, split, config, batches=batch, ranks=ranks, run=run, progress=progress)
    return {name: value.clone() for name, value in network.state_dict().items()}
