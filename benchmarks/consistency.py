"""What the consistency term costs: training steps with and without it, taking turns.

    python -m benchmarks.consistency --data FOLDER --out results/benchmarks/consistency.json

A plain step is timed twice: on the whole graph, and as training does it, on what its nodes depend on.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from conjoint.data import Split, load_graph, make_split
from conjoint.experiments.grid import paper_settings
from conjoint.nn import zoo
from conjoint.training import Consistency, TrainConfig
from conjoint.training.loss import objective
from conjoint.training.optimizer import make_optimizer
from conjoint.training.steps import part_of, whole_graph, with_unlabelled

from .measure import interleaved

GRAPHS = ("cora", "pubmed")
MODELS = ("gat", "cat-i-mf", "spread-trust")
STEPS: dict[str, tuple[str, Consistency | None]] = {
    "plain": ("auto", None),
    "plain, whole graph": ("whole", None),
    "2 passes": ("auto", Consistency(passes=2)),
    "4 passes": ("auto", Consistency(passes=4)),
    "2 passes, 512 nodes": ("auto", Consistency(passes=2, sample=512)),
    "4 passes, 512 nodes": ("auto", Consistency(passes=4, sample=512)),
}


def step_of(
    name: str, dataset: str, data: Data, split: Split, field: str, consistency: Consistency | None
) -> Callable[[], None]:
    sizes = {"features": data.x.size(1), "classes": len(data.class_names), "num_nodes": data.num_nodes}
    model = zoo.build(name, **sizes, seed=0, **paper_settings(name, dataset).model).train()
    config = TrainConfig(consistency=consistency, field=field)
    inputs = whole_graph(model, data, config)
    optimizer = make_optimizer(model, config)
    fixed = None
    if consistency is None:
        fixed = part_of(inputs, split.train, model, field)
    elif not consistency.sample:
        fixed = with_unlabelled(inputs, split.train, model, config)

    def step() -> None:
        batch = fixed or with_unlabelled(inputs, split.train, model, config)
        optimizer.zero_grad(set_to_none=True)
        whole = None if batch.graph is inputs.graph else inputs.graph
        passes = 1 if consistency is None else consistency.passes
        logits, penalty = model.predict_often(batch.x, batch.graph, whole, passes)
        objective(logits, batch.labels, batch.pick, penalty, config, 1).total.backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with raw files")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each step")
    parser.add_argument("--out", type=Path, help="a JSON file for the times")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for dataset in GRAPHS:
        data = load_graph(dataset, root=options.data)
        split = make_split(data, "public", 0)
        for model in MODELS:
            steps = {title: step_of(model, dataset, data, split, *how) for title, how in STEPS.items()}
            times = found[f"{dataset} {model}"] = interleaved(steps, options.seconds)
            told = ", ".join(
                f"{title} {1e3 * t:.1f} ms ({t / times['plain']:.2f}, {t / times['plain, whole graph']:.2f})"
                for title, t in times.items()
            )
            print(f"{dataset} {model}: {told}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
