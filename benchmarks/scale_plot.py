"""Time and memory against the size of the graph, measured and by the cost model, as a picture.

python -m benchmarks.scale_plot results/scale/sizes.jsonl --fit-up-to 2e6 --out docs/img/scale.png
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from .scale_model import KINDS, STAGES, Row, fitted, guess

PER_NODE = 20  # entries; sizes with another share are not drawn
AXES = {"cpu_seconds": (1.0, "processor seconds"), "peak_bytes": (1e9, "peak memory (GB)")}


def plot(rows: list[Row], fit_up_to: float, out: Path) -> None:
    used = [row for row in rows if row["nodes"] <= fit_up_to]
    shown = [row for row in rows if abs(row["entries"] / row["nodes"] - PER_NODE) < 0.1 * PER_NODE]
    line = np.geomspace(2e5, 1e7, 50)
    figure, places = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for place, kind in zip(places, KINDS, strict=True):
        unit, name = AXES[kind]
        for stage, colour in zip(STAGES, ("C0", "C1", "C2"), strict=True):
            model = fitted(used, stage, kind)
            guesses = [guess(model, stage, kind, n, PER_NODE * n, rows[0]["features"]) / unit for n in line]
            place.plot(line, guesses, color=colour, linewidth=1, label=f"{stage}, model")
            for row in shown:
                full = row["nodes"] <= fit_up_to
                fill = colour if full else "none"
                place.plot(row["nodes"], row[stage][kind] / unit, "o", color=colour, markerfacecolor=fill)
        place.set(xscale="log", xlabel="nodes, 10 edges each", ylabel=name)
        place.set_yscale("log" if kind == "cpu_seconds" else "linear")
        place.grid(alpha=0.3)
    places[0].legend(fontsize=8)
    figure.suptitle("dots: measured; hollow: not used in the fit", fontsize=9)
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--fit-up-to", type=float, default=2e6)
    parser.add_argument("--out", type=Path, default=Path("docs/img/scale.png"))
    chosen = parser.parse_args()
    measured = [json.loads(line) for line in chosen.rows.read_text().splitlines()]
    plot(measured, chosen.fit_up_to, chosen.out)
