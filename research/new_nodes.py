"""New nodes: accuracy on nodes that were not there when the network was trained, against retraining.

    python -m research.new_nodes --seeds 3 --models cat-i-mf cat-e-smooth --out results/new_nodes/cora.jsonl

A fifth of the nodes, none of them for training or validation, is taken out with its edges; a network is
trained on the rest, the nodes are put back, and it is asked about them. Beside it: the same network trained
on the whole graph with the same training and validation nodes. One row per model and seed; a row that is
there is not made again.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import conjoint
from conjoint.data import load_graph, make_split
from conjoint.experiments.grid import paper_settings
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import rows
from conjoint.graph.splits import Split, build_split
from conjoint.nn import zoo
from conjoint.nn.model import NodeModel
from conjoint.storage import append_line
from conjoint.training import TrainConfig, config_from, fit, predict_new_nodes, predict_proba

MODELS = (
    "gat", "cat-i-mf", "cat-e-mf", "cat-i-sc", "cat-i-nmf", "cat-i-nsc", "cat-i-spectral", "cat-e-spectral",
    "cat-i-smooth", "cat-e-smooth", "cat-e-ppr", "cat-e-jaccard", "cat-e-adamic", "cat-i-fs",
    "cat-i-trust", "cat-e-trust", "spread-trust",
)  # fmt: skip
SHARE = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--data", help="folder with raw files; the embedded Cora without it")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/new_nodes/cora.jsonl"))
    options = parser.parse_args()
    data = load_graph(options.dataset, root=options.data, source=None if options.data else "embedded")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["model"], row["seed"]) for row in read(options.out)}
    for seed in range(options.seeds):
        for model in options.models:
            if (model, seed) not in done:
                row = {"dataset": options.dataset, **compare(model, data, seed)}
                append_line(options.out, json.dumps(row, allow_nan=False))
    print(summary([row for row in read(options.out) if row["model"] in options.models]))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def compare(name: str, data: Graph, seed: int) -> dict[str, Any]:
    settings = paper_settings(name, data.name)
    config = config_from({"epochs": 1500, "patience": 100, **settings.train, "seed": seed})
    split = make_split(data, "per-class", seed)
    busy = torch.cat([split.train, split.val])
    free = np.setdiff1d(np.arange(data.num_nodes), busy.numpy())
    held = np.random.default_rng(seed).permutation(free)[: round(SHARE * data.num_nodes)]
    removed = torch.from_numpy(np.sort(held))
    small, kept = without_nodes(data, removed)
    whole = reordered(data, torch.cat([kept, removed]))
    known = kept.numel()
    parts = [torch.searchsorted(kept, part) for part in (split.train, split.val)]
    truth = whole.y[known:]
    began = time.perf_counter()
    model = trained(name, small, sealed(parts, small), config, settings.model)
    as_trained = predict_new_nodes(model, small, whole, config)[known:].argmax(dim=1)
    again = trained(name, whole, sealed(parts, whole), config, settings.model)
    retrained = predict_proba(again, whole, config)[known:].argmax(dim=1)
    return {
        "model": name,
        "seed": seed,
        "held_out": int(truth.numel()),
        "folded": float((as_trained == truth).float().mean()),
        "retrained": float((retrained == truth).float().mean()),
        "seconds": round(time.perf_counter() - began, 1),
        "conjoint": conjoint.__version__,
    }


def sealed(parts: list[torch.Tensor], data: Graph) -> Split:
    """Training and validation nodes as given; all others for testing, which nothing here looks at."""
    train, val = (part.numpy() for part in parts)
    rest = np.setdiff1d(np.arange(data.num_nodes), np.concatenate([train, val]))
    return build_split(train, val, rest, labels=data.y.numpy(), name="held-out")


def trained(name: str, data: Graph, split: Split, config: TrainConfig, settings: dict[str, Any]) -> NodeModel:
    sizes = {"features": data.num_features, "classes": len(data.class_names), "num_nodes": data.num_nodes}
    model = zoo.build(name, **sizes, seed=config.seed, **settings)
    return fit(model, data, split, replace(config, seed=config.seed)).model


def summary(rows: list[dict[str, Any]]) -> str:
    lines = ["| model | not retrained | retrained | difference | seeds |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == name]
        as_trained, again = (
            100 * float(np.mean([row[key] for row in mine])) for key in ("folded", "retrained")
        )
        lines.append(f"| {name} | {as_trained:.1f} | {again:.1f} | {as_trained - again:+.1f} | {len(mine)} |")
    return "\n".join(lines)


def without_nodes(data: Graph, removed: Tensor) -> tuple[Graph, Tensor]:
    """The graph without some nodes and their edges, and the old places of those that stayed.

    Put in front of `removed`, they give the order in which `predict_new_nodes` expects the nodes of a whole.
    """
    stays = torch.ones(data.num_nodes, dtype=torch.bool)
    stays[removed] = False
    kept = stays.nonzero().squeeze(1)
    return reordered(data, kept), kept


def reordered(data: Graph, order: Tensor) -> Graph:
    """The part of the graph on the nodes `order`, numbered in that order, without published splits."""
    place = torch.full((data.num_nodes,), -1, dtype=torch.int64)
    place[order] = torch.arange(order.numel())
    edges = place[data.edge_index]
    inside = (edges >= 0).all(dim=0)
    return data.changed(
        given_x=rows(data.x, order),
        y=data.y[order],
        edges=edges[:, inside],
        edge_weight=None if data.edge_weight is None else data.edge_weight[inside],
        ids=None if data.ids is None else data.ids[order.numpy()],
        published={},
        node_time=None,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
