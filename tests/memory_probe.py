"""Prints by how many bytes a process grows while it trains: memory_probe.py MODEL N D C E H [K [PASSES]]

N nodes, D features, C classes, E edges, H hidden units, K heads (0: the model has none). The training nodes
are half of the graph and the whole graph is computed, as `describe` assumes.
"""

import ctypes
import gc
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from conjoint.graph.splits import build_split
from conjoint.nn.zoo import build
from conjoint.training import Consistency, TrainConfig, fit


def resident(which: str) -> int:
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found.group(1))


def graph(nodes: int, features: int, classes: int, edges: int) -> Data:
    generator = torch.Generator().manual_seed(0)
    one_way = torch.randint(0, nodes, (2, edges), generator=generator)
    x = torch.rand(nodes, features, generator=generator)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    return Data(x=x, edge_index=torch.cat([one_way, one_way.flip(0)], 1), y=y, num_nodes=nodes)


def train(data: Data, model: str, hidden: int, heads: int, passes: int) -> None:
    nodes, classes = int(data.num_nodes or 0), int(data.y.max()) + 1
    order = np.random.default_rng(0).permutation(nodes)
    parts = np.split(order, [nodes // 2, 3 * nodes // 4])
    split = build_split(*parts, labels=data.y.numpy(), name="probe")
    sizes = {"features": data.x.size(1), "classes": classes, "num_nodes": nodes}
    made = build(model, **sizes, seed=0, hidden=hidden, **({"heads": heads} if heads else {}))
    consistency = Consistency(passes=passes) if passes > 1 else None
    fit(made, data, split, TrainConfig(epochs=3, field="whole", patience=0, consistency=consistency))


def growth(model: str, sizes: list[int], hidden: int, heads: int = 0, passes: int = 1) -> int:
    train(graph(200, 20, 3, 500), model, 8, heads, passes)  # whatever is loaded on first use
    data = graph(*sizes)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here
    train(data, model, hidden, heads, passes)
    return resident("VmHWM") - before


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    print(growth(name, [*map(int, numbers[:4])], *map(int, numbers[4:])))
