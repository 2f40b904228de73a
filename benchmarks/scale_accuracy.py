"""Batches against the full graph: test accuracy over the same splits and seeds, one JSON row per run.

python -m benchmarks.scale_accuracy pubmed --seeds 5
python -m benchmarks.scale_accuracy coauthor-cs ogbn-arxiv --seeds 5       # much longer

Rows that are there already are not made again. CONJOINT_DATA names the folder with the raw files.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from conjoint.data import load_graph, make_split
from conjoint.graph.graph import as_graph
from conjoint.graph.splits import Split
from conjoint.nn.zoo import build
from conjoint.training import BatchConfig, TrainConfig, evaluate, fit
from conjoint.training.predictions import predicted_pieces, result_row

MODEL = "cat-i-mf"
# Sizes that make several batches of every graph. OGB-Arxiv comes without its word features, and each way has
# its own number of epochs under a cosine: an epoch is one step on the full graph, and several in batches.
CASES: dict[str, dict[str, Any]] = {
    "pubmed": {
        "split": "public",
        "clusters": BatchConfig(kind="clusters", size=5000),
        "neighbours": BatchConfig(kind="neighbours", size=20, fanout=(10,)),
    },
    "coauthor-cs": {
        "split": "per-class",
        "settings": {"hidden": 32},
        "clusters": BatchConfig(kind="clusters", size=5000),
        "neighbours": BatchConfig(kind="neighbours", size=100, fanout=(10,)),
    },
    "ogbn-arxiv": {
        "split": "time",
        "load": {"features": "spectral:128"},
        "settings": {
            "hidden": 16,
            "heads": 3,
            "out_heads": 3,
            "norm": "batch",
            "residual": True,
            "bias": "output",
            "dropout": 0.25,
            "attention_dropout": 0.0,
        },
        "train": {
            "lr": 0.03,
            "schedule": "cosine",
            "patience": 0,
            "evaluate_every": 5,
            "row_normalise": "never",
        },
        "epochs": {"full": 100, "clusters": 60, "neighbours": 15},
        "clusters": BatchConfig(kind="clusters", size=40_000),
        "neighbours": BatchConfig(kind="neighbours", size=4096, fanout=(10,)),
    },
}


def one_run(name: str, way: str, seed: int) -> dict[str, Any]:
    case = CASES[name]
    data = load_graph(name, **case.get("load", {}))
    split: Split = make_split(data, case["split"], **({"seed": seed} if case["split"] == "per-class" else {}))
    sizes = {"features": data.x.size(1), "classes": int(data.y.max()) + 1, "num_nodes": int(data.num_nodes)}
    model = build(MODEL, **sizes, seed=seed, **case.get("settings", {}))
    epochs = {"epochs": case["epochs"][way]} if "epochs" in case else {}
    config = TrainConfig(seed=seed, **epochs, **case.get("train", {}))
    started = time.perf_counter()
    if way == "full":
        fitted = fit(model, data, split, config)
        row = evaluate(fitted, data, split)
    else:
        graph = as_graph(data)
        fitted = fit(model, graph, split, config, batches=case[way])
        guesses = [shares.argmax(axis=1) for _, shares in predicted_pieces(fitted.model, graph, config, True)]
        row = result_row(fitted, np.concatenate(guesses), graph, split)
    return {"dataset": name, "way": way, **row, "seconds": round(time.perf_counter() - started, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+", choices=sorted(CASES))
    parser.add_argument("--ways", nargs="+", default=["full", "clusters", "neighbours"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/scale/accuracy.jsonl"))
    chosen = parser.parse_args()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    done = {(row["dataset"], row["way"], row["seed"]) for row in rows}
    for name in chosen.datasets:
        for seed in range(chosen.seeds):
            for way in chosen.ways:
                if (name, way, seed) in done:
                    continue
                rows.append(one_run(name, way, seed))
                with open(chosen.out, "a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        for way in chosen.ways:
            found = [
                100 * row["test_accuracy"] for row in rows if (row["dataset"], row["way"]) == (name, way)
            ]
            print(f"{name} {way}: {statistics.mean(found):.2f} over {len(found)} seeds")


if __name__ == "__main__":
    main()
