"""Draw docs/img/theory-collisions.png: what the self term separates, and what it leaves.

python -m research.theory.plot
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from .collisions import colliding_scores
from .neighbourhoods import Layer, Neighbourhood, Strategy, aggregate

STRATEGIES: tuple[Strategy, ...] = ("implicit", "explicit")
TARGET = Path(__file__).resolve().parents[2] / "docs/img/theory-collisions.png"
ROUNDING = 1e-17  # where zero is drawn on a logarithmic axis


def distance(strategy: Strategy, one: Neighbourhood, two: Neighbourhood, layer: Layer) -> float:
    gap = aggregate(strategy, one, layer) - aggregate(strategy, two, layer)
    return max(float(np.linalg.norm(gap)), ROUNDING)


def draw_sizes(axes: Axes, layer: Layer, rng: np.random.Generator) -> None:
    """Each neighbourhood against k copies of itself: the collision that all aggregators share."""
    ratios = np.arange(2, 17)
    for base, colour in ((2, "tab:blue"), (8, "tab:orange"), (32, "tab:green")):
        one = Neighbourhood(np.arange(base) % layer.num_features, rng.normal(size=base))
        copies = [Neighbourhood(np.tile(one.features, k), np.tile(one.scores, k)) for k in ratios]
        for strategy, style in zip(STRATEGIES, ("o-", "+-"), strict=True):
            pairs = [
                (distance(strategy, one, two, layer), distance(strategy, one, two, replace(layer, eps=0.0)))
                for two in copies
            ]
            repaired, bare = np.array(pairs).T
            name = f"{base} members, self term" if strategy == "implicit" else None
            axes.semilogy(ratios, repaired, style, color=colour, ms=4, lw=1, label=name)
            axes.semilogy(ratios, bare, style[0], color=colour, ms=4, alpha=0.4)
    axes.axhspan(ROUNDING / 2, 1e-15, color="0.93", zorder=0)
    axes.text(9, 2e-14, "no self term: rounding only", ha="center", va="top", fontsize=8, color="0.35")
    axes.set(xlabel="copies k: |X₂| = k |X₁|", ylabel="distance of the outputs", ylim=(ROUNDING / 2, 10))
    axes.set_title("different sizes: separated", fontsize=10)
    axes.legend(fontsize=7, loc="center", bbox_to_anchor=(0.6, 0.55))


def draw_scores(axes: Axes, layer: Layer, rng: np.random.Generator) -> None:
    """{a, b, b} against {a, a, b} while the scores pass through those that make them collide."""
    strengths = np.linspace(0.0, 2.0, 81)
    members = np.array([0, 1, 1]), np.array([0, 0, 1])
    for strategy, colour in zip(STRATEGIES, ("tab:red", "tab:purple"), strict=True):
        one, two = colliding_scores(strategy, *members, layer, rng)
        for used, style, width, name in (
            (layer, "-", 1.2, ", self term"),
            (replace(layer, eps=0.0), ":", 3, ""),
        ):
            gaps = [
                distance(
                    strategy,
                    Neighbourhood(one.features, t * one.scores),
                    Neighbourhood(two.features, t * two.scores),
                    used,
                )
                for t in strengths
            ]
            axes.plot(strengths, gaps, style, color=colour, lw=width, label=strategy + name)
    axes.set(xlabel="scores × t (they offset the counts at t = 1)", ylabel="distance of the outputs")
    axes.set_ylim(bottom=0.0)
    axes.set_title("same size {a,b,b}, {a,a,b}: not separated at t = 1", fontsize=10)
    axes.legend(fontsize=7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    layer = Layer(rng.normal(size=(4, 3)), rng.normal(size=(4, 4)), r_s=0.6, eps=0.5)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    draw_sizes(left, layer, rng)
    draw_scores(right, layer, rng)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    partial = options.out.with_suffix(".partial.png")
    figure.savefig(partial, dpi=90, metadata={"Software": None})
    os.replace(partial, options.out)
    print(options.out, options.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
