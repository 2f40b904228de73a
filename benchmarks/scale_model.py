"""A cost model fitted to measured sizes, checked on those that were not used, and asked about larger ones.

python -m benchmarks.scale_model results/scale/sizes.jsonl --fit-up-to 2e6 --ask 1e8:1.6e9

An entry is one direction of an edge. A piece of the graph has PIECE entries, which name different nodes, the
more the larger the graph: rows = nodes (1 - exp(-PIECE / nodes)), as for draws with replacement. No term is
negative.

- Processor seconds (they depend less than the clock on what else the machine does): a + b nodes + c entries
  + d entries x rows / PIECE, the last for reading rows.
- Peak bytes: what is known, mapped windows of the files (`conjoint.graph.mapped.gather`) and V; and
  a + b nodes + c rows.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from conjoint.graph.mapped import WINDOW_BYTES
from conjoint.training.inference import PIECE_ENTRIES

STAGES = ("ingest", "train", "predict")
WORDS = {  # millions of them
    "cpu_seconds": ("", " nodes", " entries", " entries x rows / piece"),
    "peak_bytes": ("", " nodes", " rows"),
}
KINDS = tuple(WORDS)
HIDDEN, RANK = 64, 16  # units and columns of V of the network that scale_run trains
Row = dict[str, Any]
Floats = npt.NDArray[np.float64]


def terms(kind: str, nodes: float, entries: float) -> Floats:
    rows = -nodes * np.expm1(-PIECE_ENTRIES / nodes)
    if kind == "cpu_seconds":
        return np.array([1.0, nodes / 1e6, entries / 1e6, entries / 1e6 * rows / PIECE_ENTRIES])
    return np.array([1.0, nodes / 1e6, rows / 1e6])


def known(kind: str, stage: str, nodes: float, entries: float, features: int) -> float:
    """Bytes of what is mapped at once (features, neighbours, hidden units), and of V.

    Training has V four times: itself, Adam's two moments, the best so far. Ingestion maps nothing.
    """
    if kind == "cpu_seconds" or stage == "ingest":
        return 0.0
    files = (4 * features * nodes, 4 * entries, 4 * HIDDEN * nodes)
    copies = 4 if stage == "train" else 1
    return sum(min(size, WINDOW_BYTES) for size in files) + copies * 4 * RANK * nodes


def sizes(row: Row) -> tuple[float, float, int]:
    return row["nodes"], row["entries"], row["features"]


def fitted(rows: Sequence[Row], stage: str, kind: str) -> Floats:
    """Relative errors count, so that small sizes have their say."""
    measured = np.array([row[stage][kind] for row in rows], dtype=np.float64)
    rest = measured - np.array([known(kind, stage, *sizes(row)) for row in rows])
    design = np.stack([terms(kind, row["nodes"], row["entries"]) for row in rows])
    return nnls(design / measured[:, None], rest / measured)[0]


def guess(model: Floats, stage: str, kind: str, nodes: float, entries: float, features: int) -> float:
    return known(kind, stage, nodes, entries, features) + float(terms(kind, nodes, entries) @ model)


def table(rows: Sequence[Row], fit_up_to: float, asked: Sequence[tuple[float, float]]) -> str:
    used = [row for row in rows if row["nodes"] <= fit_up_to]
    lines = ["| stage | cost | fitted |", "|---|---|---|"]
    models = {(stage, kind): fitted(used, stage, kind) for stage in STAGES for kind in KINDS}
    for (stage, kind), model in models.items():
        parts = (f"{_said(kind, value)}{word}" for value, word in zip(model, WORDS[kind], strict=True))
        lines.append(f"| {stage} | {kind} | {' + '.join(parts)} |")
    lines += ["", "| nodes | entries | stage | cost | model | measured |", "|---|---|---|---|---|---|"]
    for row in rows:
        for (stage, kind), model in models.items():
            said = _said(kind, guess(model, stage, kind, *sizes(row)))
            role = "" if row["nodes"] <= fit_up_to else " (not used in the fit)"
            size = f"| {row['nodes']:,}{role} | {row['entries']:,} | {stage} | {kind} "
            lines.append(f"{size}| {said} | {_said(kind, row[stage][kind])} |")
    for nodes, edges in asked:
        for (stage, kind), model in models.items():
            said = _said(kind, guess(model, stage, kind, nodes, 2 * edges, rows[0]["features"]))
            lines.append(f"| {nodes:,.0f} | {2 * edges:,.0f} | {stage} | {kind} | {said} | - |")
    return "\n".join(lines)


def _said(kind: str, value: float) -> str:
    return f"{value:.1f} s" if kind == "cpu_seconds" else f"{value / 2**20:.0f} MiB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--fit-up-to", type=float, default=2e6)
    parser.add_argument("--ask", nargs="*", default=["1e8:1.6e9"], metavar="NODES:EDGES")
    chosen = parser.parse_args()
    measured = [json.loads(line) for line in chosen.rows.read_text().splitlines()]
    asked = [(float(ask.split(":")[0]), float(ask.split(":")[1])) for ask in chosen.ask]
    print(table(measured, chosen.fit_up_to, asked))
