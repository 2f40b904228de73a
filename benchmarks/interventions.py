"""What an intervention adds to a training step, and how many steps its preparation takes.

    python -m benchmarks.interventions pubmed --data FOLDER --rounds 12
    python -m benchmarks.interventions arxiv-shaped --rounds 3  # a graph of ogbn-arxiv's size

All networks take turns, step by step, so that a busy machine slows them alike; medians, as ratios to GAT with
the self term. Steps are timed on the whole graph and, as training does it, on the training nodes' field.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from conjoint.data import load_graph, make_split
from conjoint.experiments.grid import paper_settings
from conjoint.kernels import kept_memory
from conjoint.nn import zoo
from conjoint.nn.model import NodeModel
from conjoint.training import TrainConfig
from conjoint.training.optimizer import make_optimizer
from conjoint.training.steps import Batch, part_of, whole_graph

from .graphs import arxiv_shaped
from .members import graph_of

BASE = "gat-self"
MODELS = [
    BASE,
    *(f"cat-e-{name}" for name in ("mf", "sc", "nmf", "nsc", "fs")),
    *(f"cat-e-{name}" for name in ("spectral", "smooth", "trust", "ppr", "jaccard", "adamic")),
    "cat-e-smooth+spectral",
    "cat-i-smooth+spectral",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("--data", help="folder with raw files; the embedded Cora needs none")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    if options.dataset == "arxiv-shaped":
        data = graph_of(arxiv_shaped(64))
    else:
        data = load_graph(options.dataset, root=options.data)
    split = make_split(data, "per-class", 0)
    steps: dict[tuple[str, str], Callable[[], None]] = {}
    preparing: dict[str, float] = {}
    chosen = paper_settings(BASE, options.dataset)  # all of them are trained like it
    for name in MODELS:
        sizes = {"features": data.x.size(1), "classes": data.num_classes, "num_nodes": data.num_nodes}
        preparing[name] = float("inf")
        for _ in range(3):
            model = zoo.build(name, **sizes, seed=0, **chosen.model)
            graph = model.prepare(data.edge_index, data.num_nodes)
            x = whole_graph(zoo.build(BASE, **sizes), data, TrainConfig()).x
            began = time.perf_counter()
            model.observe(x, graph)
            preparing[name] = min(preparing[name], time.perf_counter() - began)
        inputs = Batch(x, graph, data.y)
        for field in ("whole", "auto"):
            steps[name, field] = step_of(model, inputs, split.train, field)
    times = in_turns(steps, options.rounds)
    for name in MODELS:
        whole, part = (statistics.median(times[name, field]) for field in ("whole", "auto"))
        ratios = [
            statistics.median(times[name, f]) / statistics.median(times[BASE, f]) for f in ("whole", "auto")
        ]
        print(
            f"{name:22} whole {1e3 * whole:6.1f} ms x{ratios[0]:.2f}  field {1e3 * part:6.1f} ms "
            f"x{ratios[1]:.2f}  prepared in {1e3 * preparing[name]:6.1f} ms: "
            f"{preparing[name] / whole:.1f} or {preparing[name] / part:.1f} steps"
        )


def step_of(model: NodeModel, inputs: Batch, train: torch.Tensor, field: str) -> Callable[[], None]:
    batch = part_of(inputs, train, model, field)
    optimizer = make_optimizer(model, TrainConfig())
    whole = None if batch.graph is inputs.graph else inputs.graph

    def step() -> None:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        (logits,), penalty = model.predict_often(batch.x, batch.graph, whole)
        logits = logits if batch.pick is None else logits[batch.pick]
        (F.cross_entropy(logits, batch.labels) + 0.01 * penalty).backward()
        optimizer.step()

    return step


def in_turns(
    steps: dict[tuple[str, str], Callable[[], None]], rounds: int
) -> dict[tuple[str, str], list[float]]:
    times: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
    with kept_memory():
        for turn in range(rounds + 2):  # the first two warm up
            for key, step in steps.items():
                began = time.perf_counter()
                step()
                if turn >= 2:
                    times[key].append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
