"""The README's table from rows, and its picture from a training on Cora.

python scripts/readme.py              writes the table into README.md
python scripts/readme.py --picture    also trains and draws docs/img/why.svg, in some minutes
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for research

from research.any_graph import OTHER, PAPER, SHARES, read_rows, seconds, values

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- table: python scripts/readme.py -->\n).*?(<!-- /table -->)", re.S)
COLUMNS = {"tuned gcn": "GCN", "tuned sage": "GraphSAGE", "tuned gat": "GAT", "ensemble": "`conjoint train`"}
NODE = "31336"  # of Cora, as in the examples of `conjoint explain`
RUN = ["train", "cora", "--edition", "embedded", "--seed", "0", "--trials", "1000", "--no-report"]


def table(rows: list[dict[str, Any]], benchmarks: list[dict[str, Any]]) -> str:
    """How good by the rows of research.any_graph, how fast by those of benchmarks.run."""
    lines = ["| graph (splits) | most common class | " + " | ".join(COLUMNS.values()) + " | seconds |"]
    lines.append("|---|" + "---|" * (len(COLUMNS) + 2))
    for name in (*(name for names in OTHER.values() for name in names), *PAPER):
        some = [row for row in rows if (row["graph"], row["setting"]) == (name, SHARES)]
        if not some:
            continue
        found = {column: values(some, column) for column in COLUMNS}
        means = {column: fmean(one) for column, one in found.items() if one}
        best = max(round(mean, 1) for mean in means.values())
        cells = [f"{100 * fmean(row['test']['ensemble']['majority'] for row in some):.1f}"]
        for column in COLUMNS:
            text = f"{means[column]:.1f}" if column in means else ""
            text += f" ({len(found[column])})" if 0 < len(found[column]) < len(some) else ""
            cells.append(f"**{text}**" if text and round(means[column], 1) == best else text)
        lines.append(f"| {name} ({len(some)}) | " + " | ".join([*cells, seconds(some)]) + " |")
    return "\n".join([*lines, "", faster(benchmarks)])


def faster(benchmarks: list[dict[str, Any]]) -> str:
    steps = [one["steps"] for one in benchmarks if "steps" in one]
    told = []
    for name, title in {"cora": "Cora", "pubmed": "Pubmed", "arxiv-64": "OGB-Arxiv"}.items():
        ratios = [round(one[name]["pyg"] / one[name]["cat-mf"]) for one in steps]
        told.append(f"{min(ratios)} to {max(ratios)} times on {title}")
    return (
        "A training step of conjoint attention on two CPU cores is faster than one of PyG's `GATConv` in the "
        f"same network: {', '.join(told)} ({len(steps)} runs; [how it was measured](docs/performance.md))."
    )


def measured() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((ROOT / "results/benchmarks").glob("20*.json"))]


def draw(out: Path) -> None:
    """What `conjoint explain --plot` draws, with text kept as text: smaller, and it can be searched."""
    conjoint = [sys.executable, "-m", "conjoint"]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "matplotlibrc"
        settings.write_text("svg.fonttype: none\nsvg.hashsalt: conjoint\n")
        subprocess.run([*conjoint, *RUN, "--out", f"{folder}/run"], check=True)
        command = [*conjoint, "explain", f"{folder}/run", NODE, "--plot", str(out)]
        subprocess.run(command, check=True, env={**os.environ, "MATPLOTLIBRC": str(settings)})


if __name__ == "__main__":
    readme = ROOT / "README.md"
    made = table(read_rows(), measured())
    readme.write_text(
        PLACE.sub(lambda found: f"{found[1]}{made}\n{found[2]}", readme.read_text("utf-8")), "utf-8"
    )
    if "--picture" in sys.argv[1:]:
        draw(ROOT / "docs" / "img" / "why.svg")
