"""A cost model fitted to measured sizes, checked on those that were not used, and asked about larger ones.

python -m benchmarks.scale_model results/scale/sizes.jsonl --fit-up-to 5e5 --ask 1e8:1.6e9

Processor seconds and peak bytes of each stage are taken as a + b nodes + c entries with no negative term (an
entry is one direction of an edge). Processor time, because it depends less on what else the machine does.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

STAGES = ("ingest", "train", "predict")
KINDS = ("cpu_seconds", "peak_bytes")
Row = dict[str, Any]


def terms(nodes: float, entries: float) -> npt.NDArray[np.float64]:
    return np.array([1.0, nodes / 1e6, entries / 1e6])


def fitted(rows: Sequence[Row], stage: str, kind: str) -> npt.NDArray[np.float64]:
    """Relative errors count, so that small sizes have their say."""
    measured = np.array([row[stage][kind] for row in rows], dtype=np.float64)
    design = np.stack([terms(row["nodes"], row["entries"]) for row in rows])
    return nnls(design / measured[:, None], np.ones(len(rows)))[0]


def table(rows: Sequence[Row], fit_up_to: float, asked: Sequence[tuple[float, float]]) -> str:
    used = [row for row in rows if row["nodes"] <= fit_up_to]
    lines = ["| stage | cost | a | per million nodes | per million entries |", "|---|---|---|---|---|"]
    models = {(stage, kind): fitted(used, stage, kind) for stage in STAGES for kind in KINDS}
    for (stage, kind), model in models.items():
        lines.append(f"| {stage} | {kind} | {' | '.join(_said(kind, value) for value in model)} |")
    lines += ["", "| nodes | entries | stage | cost | model | measured |", "|---|---|---|---|---|---|"]
    for row in rows:
        for (stage, kind), model in models.items():
            guess = float(terms(row["nodes"], row["entries"]) @ model)
            role = "" if row["nodes"] <= fit_up_to else " (not used in the fit)"
            size = f"| {row['nodes']:,}{role} | {row['entries']:,} | {stage} | {kind} "
            lines.append(f"{size}| {_said(kind, guess)} | {_said(kind, row[stage][kind])} |")
    for nodes, edges in asked:
        for (stage, kind), model in models.items():
            guess = float(terms(nodes, 2 * edges) @ model)
            lines.append(f"| {nodes:,.0f} | {2 * edges:,.0f} | {stage} | {kind} | {_said(kind, guess)} | - |")
    return "\n".join(lines)


def _said(kind: str, value: float) -> str:
    return f"{value:.1f} s" if kind == "cpu_seconds" else f"{value / 2**20:.0f} MiB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--fit-up-to", type=float, default=5e5)
    parser.add_argument("--ask", nargs="*", default=["1e8:1.6e9"], metavar="NODES:EDGES")
    chosen = parser.parse_args()
    known = [json.loads(line) for line in chosen.rows.read_text().splitlines()]
    sizes = [(float(ask.split(":")[0]), float(ask.split(":")[1])) for ask in chosen.ask]
    print(table(known, chosen.fit_up_to, sizes))
