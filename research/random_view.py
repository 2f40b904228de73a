"""What a view that knows nothing costs: an intervention alone, and the same with random scores beside it.

    python -m research.random_view --seeds 10 --interventions spectral smooth

Embedded Cora, 20 labels per class, a new split and other weights for each seed, the paper's training. One row
per run in results/several/; a row that is there is not made again.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from conjoint.experiments.execute import execute
from conjoint.experiments.grid import paper_settings
from conjoint.experiments.rows import RunSpec
from conjoint.experiments.runner import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--interventions", nargs="+", default=["spectral", "smooth"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/several"))
    options = parser.parse_args()
    for start in ("cat-i-", "cat-e-"):
        for name in options.interventions:
            # A second score that is the same for every edge changes no softmax, but it lets the network
            # choose how sharply to follow the first one, as it may beside the random scores.
            neutral = "+zero" if start == "cat-e-" else ""
            alone = [spec(start + name + neutral, seed) for seed in range(options.seeds)]
            beside = [spec(f"{start}{name}+random", seed) for seed in range(options.seeds)]
            rows = run([*alone, *beside], options.out, execute)
            print(compare(rows[: options.seeds], rows[options.seeds :]), flush=True)


def spec(model: str, seed: int) -> RunSpec:
    chosen = paper_settings("gat-self", "cora")  # every network of conjoint attention is trained like it
    return RunSpec(
        model=model,
        dataset="cora",
        source="embedded",
        split="per-class",
        split_seed=seed,
        seed=seed,
        model_settings=chosen.model,
        train_settings={**chosen.train, "epochs": 500, "patience": 100},
    )


def compare(alone: list[dict[str, Any]], beside: list[dict[str, Any]]) -> str:
    """Mean accuracies, the paired difference with its standard error, and the random view's mean weights."""
    cost = [100 * (a["test_accuracy"] - b["test_accuracy"]) for a, b in zip(alone, beside, strict=True)]
    means = [100 * statistics.mean(row["test_accuracy"] for row in rows) for rows in (alone, beside)]
    error = statistics.stdev(cost) / len(cost) ** 0.5 if len(cost) > 1 else float("nan")
    weights = [
        statistics.mean(row["intervention_weights"][layer]["random"] for row in beside) for layer in range(2)
    ]
    return (
        f"{alone[0]['model']:19} {means[0]:.1f} alone, {means[1]:.1f} with random scores: costs "
        f"{statistics.mean(cost):.2f} ± {error:.2f} points; the random view weighs {weights[0]:.3f} "
        f"in the first layer, {weights[1]:.3f} in the second"
    )


if __name__ == "__main__":
    main()
