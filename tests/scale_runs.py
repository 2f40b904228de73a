"""A training in batches that one or many processes run alike.

Every process writes its final weights, so that a test can compare them.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from conjoint.data.splits import Split, build_split
from conjoint.nn.zoo import build
from conjoint.scale import BatchConfig, Ranks, fit_batches, joined
from conjoint.store import stored_from
from conjoint.training import TrainConfig
from graphs import random_graph

NODES, FEATURES, CLASSES = 150, 8, 3


def graph_and_split() -> tuple[Data, Split]:
    rng = np.random.default_rng(0)
    y = np.arange(NODES) % CLASSES
    x = rng.normal(size=(NODES, FEATURES)) + (np.arange(FEATURES)[None] % CLASSES == y[:, None])
    edges, _ = random_graph(NODES, 400, seed=1)
    data = Data(x=torch.from_numpy(x).float(), edge_index=edges, y=torch.from_numpy(y))
    data.num_nodes = NODES
    order = rng.permutation(NODES)
    return data, build_split(order[:60], order[60:100], order[100:], labels=y, name="small")


def train(
    ranks: Ranks, kind: str = "neighbours", model: str = "cat-i-mf", epochs: int = 4, **settings: Any
) -> dict[str, torch.Tensor]:
    data, split = graph_and_split()
    network = build(
        model, features=FEATURES, classes=CLASSES, num_nodes=NODES, seed=0, hidden=4, heads=2, **settings
    )
    size = 15 if kind == "neighbours" else 40
    batch = BatchConfig(kind=kind, size=size, joined=3, fanout=(4, 3), per_step=4, penalty_neighbours=4)
    config = TrainConfig(epochs=epochs, patience=0, lr=0.02)
    fit_batches(network, stored_from(data), split, config, batch, ranks=ranks)
    return {name: value.clone() for name, value in network.state_dict().items()}


if __name__ == "__main__":
    out, kind, model = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    settings: dict[str, Any] = {"norm": "batch"} if "norm" in sys.argv else {}
    with joined(timeout=60) as ranks:
        save_file(train(ranks, kind, model, **settings), out / f"{ranks.rank}-of-{ranks.world}.safetensors")
