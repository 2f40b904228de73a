"""What others would pick: GCN, GraphSAGE and GAT, tuned as in "Classic GNNs are strong baselines".

    python -m research.classic                        whatever is missing, into results/any-graph/peers.jsonl
    python -m research.classic --graphs wisconsin,cora --splits 3

After Luo et al. (2024): a linear branch beside each convolution, a norm, dropout, two to ten layers. Each
network has four settings, of which validation accuracy chooses; test nodes come in at the very end. A row is
one split of one graph in one setting, those of `research.any_graph`, whose page shows both. The convolutions
are this package's kernels, so that seconds compare networks and not libraries.

    h <- drop(relu(norm(conv(h) + W h)))
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from conjoint.graph.adjacency import Adjacency
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import is_sparse
from conjoint.graph.splits import Split
from conjoint.nn import ops
from conjoint.nn.layer_class import layer_class
from conjoint.nn.layers import FeatureLinear, draw_dropout
from conjoint.nn.model import ScoredModel
from conjoint.nn.residual import NORMS
from conjoint.nn.simple import neighbour_mean
from conjoint.training import TrainConfig, fit
from conjoint.training.metrics import all_metrics
from conjoint.training.predictions import predict_proba
from conjoint.training.seeding import build_seeded

ROWS = Path(__file__).resolve().parents[1] / "results" / "any-graph" / "peers.jsonl"
CONVOLUTIONS = ("gcn", "sage", "gat")
HEADS, EPOCHS = 8, 500
GRID: tuple[dict[str, Any], ...] = (
    {"hidden": 64, "layers": 2, "norm": "none", "branch": False, "dropout": 0.5, "weight_decay": 5e-4},
    {"hidden": 256, "layers": 2, "norm": "layer", "branch": True, "dropout": 0.5, "weight_decay": 5e-4},
    {"hidden": 128, "layers": 5, "norm": "layer", "branch": True, "dropout": 0.5, "weight_decay": 0.0},
    {"hidden": 64, "layers": 10, "norm": "batch", "branch": True, "dropout": 0.2, "weight_decay": 0.0},
)


class Layer(nn.Module):
    def __init__(self, kind: str, size: int, hidden: int, norm: str, branch: bool) -> None:
        super().__init__()
        self.kind = kind
        # GraphSAGE's mean leaves the node itself out, so its own branch is part of the layer.
        self.own = FeatureLinear(size, hidden) if branch or kind == "sage" else None
        self.near: nn.Module
        if kind == "gat":
            self.near = layer_class()(size, hidden // HEADS, HEADS, self_term=False)
        else:
            self.near = FeatureLinear(size, hidden)
        self.norm = NORMS[norm](hidden)

    def forward(self, h: Tensor, graph: Adjacency) -> Tensor:
        """[nodes, size] -> [nodes, hidden]"""
        if self.kind == "gat":
            out = self.near(h, graph)
        elif self.kind == "sage":
            out = neighbour_mean(graph, self.near(h), with_self=False)
        else:
            out = ops.aggregate(graph, gcn_weights(graph), self.near(h).unsqueeze(1)).squeeze(1)
        return self.norm(out if self.own is None else out + self.own(h))


def gcn_weights(graph: Adjacency) -> Tensor:
    """1 / sqrt(d_i d_j), self-loops counted. -> [entries, 1]"""

    def make() -> Tensor:
        root = graph.degree.float().rsqrt()
        return (root[graph.row] * root[graph.col]).unsqueeze(1)

    return graph.once(gcn_weights, make)


class Classic(ScoredModel):
    """GCN, GraphSAGE or GAT with what makes them strong. Dense columns have mean 0 and deviation 1."""

    def __init__(
        self,
        kind: str,
        size: int,
        classes: int,
        hidden: int,
        layers: int,
        norm: str,
        branch: bool,
        dropout: float,
    ) -> None:
        super().__init__(None)
        self.dropout = dropout
        sizes = [size, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(Layer(kind, one, hidden, norm, branch) for one in sizes)
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        return self.last(self.embed(x, graph))

    def embed(self, x: Tensor, graph: Adjacency) -> Tensor:
        h = x if is_sparse(x) else standardised(x, graph)
        for layer in self.layers:
            out = layer(h, graph)
            h = ops.activate_and_drop(out, "relu", *draw_dropout(self, self.dropout, out))
        return h


def standardised(x: Tensor, graph: Adjacency) -> Tensor:
    def make() -> Tensor:
        deviation, mean = torch.std_mean(x, dim=0, correction=0)
        return (x - mean) / torch.where(deviation > 1e-6, deviation, 1.0)

    return graph.once(standardised, make)


def tuned(kind: str, graph: Graph, split: Split, seed: int) -> tuple[dict[str, float], int]:
    """Metrics on the test nodes of the setting with the best validation accuracy, and its number."""
    found = []
    for number, setting in enumerate(GRID):
        sizes = {name: value for name, value in setting.items() if name != "weight_decay"}
        shape = (kind, graph.num_features, graph.num_classes)
        model = build_seeded(partial(Classic, *shape, **sizes), seed)
        config = TrainConfig(
            epochs=EPOCHS, lr=0.005, patience=100, rule="val-accuracy", seed=seed, evaluate_every=4,
            weight_decay=setting["weight_decay"], row_normalise="never",
        )  # fmt: skip
        fitted = fit(model, graph, split, config)
        found.append((fitted.metrics["val_accuracy"], -number, predict_proba(fitted.model, graph, config)))
    _, number, shares = max(found, key=lambda one: one[:2])
    test = split.reveal_test().numpy()
    return all_metrics(graph.y.numpy()[test], shares.numpy()[test]), -number


def read_peers() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def make_rows(graphs: list[str] | None, settings: list[str] | None, splits: int) -> None:
    from .any_graph import graph_and_split, specs  # whose page shows these rows

    root = os.environ["CONJOINT_DATA"]
    done = {(row["graph"], row["setting"], row["split"]) for row in read_peers()}
    for name, setting, k in specs(splits):
        wanted = (graphs is None or name in graphs) and (settings is None or setting in settings)
        if not wanted or (name, setting, k) in done:
            continue
        graph, split = graph_and_split(name, setting, k, root)
        row: dict[str, Any] = {"graph": name, "setting": setting, "split": k, "seconds": {}, "test": {}}
        row["chosen"] = {}
        for kind in CONVOLUTIONS:
            began = time.perf_counter()
            title = f"classic {kind}"
            row["test"][title], row["chosen"][title] = tuned(kind, graph, split, k)
            row["seconds"][title] = round(time.perf_counter() - began, 2)
        with open(ROWS, "a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        told = {title: round(100 * found["accuracy"], 1) for title, found in row["test"].items()}
        print(name, setting, k, told, row["chosen"], row["seconds"], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", help="only these, joined by commas")
    parser.add_argument("--settings", help="only these, joined by a semicolon")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of torch; default: as many as there are cores")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    make_rows(
        options.graphs.split(",") if options.graphs else None,
        options.settings.split(";") if options.settings else None,
        options.splits,
    )
