"""From two CSV files to predictions by the plain command: seconds, peak memory and what came out right.

    python -m benchmarks.from_csv --nodes 1e6 --edges 1e7 --scratch /opt/csv

The graph is `scale_graph`'s, written as CSV; a fifth of the labels are left empty, and those are judged.
Peak memory is that of all processes of the command together (pages that several share count once), as it was
seen twice a second. One JSON row, into results/scale/from_csv.jsonl.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import environment
from .scale_graph import write_tables

HIDDEN = 0.2  # share of the labels that are left empty


def write_csv(home: Path, nodes: int, edges: int, features: int) -> tuple[Path, Path]:
    """edges.csv, nodes.csv; the labels that were left out stay in nodes.parquet."""
    paths = home / "edges.csv", home / "nodes.csv"
    from_edges, from_nodes = write_tables(home, nodes, edges, features)
    pl.scan_parquet(from_edges).sink_csv(paths[0])
    table = pl.read_parquet(from_nodes)
    kept = np.random.default_rng(0).random(nodes) >= HIDDEN
    shown = table.drop("part").with_columns(
        pl.when(pl.Series(kept)).then(pl.col("label")),
        pl.col("^f[0-9]+$").round(4),
    )
    shown.write_csv(paths[1])
    return paths


def resident(root: int) -> int:
    """Bytes that a process and its descendants hold; shared pages count once, in shares (PSS)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def train(home: Path, paths: tuple[Path, Path], more: list[str]) -> dict[str, Any]:
    """`conjoint train` on the files, nothing else said."""
    files = ("--edges", str(paths[0]), "--nodes", str(paths[1]), "--label", "label")
    call = [sys.executable, "-m", "conjoint", "train", *files, "--out", str(home / "run"), *more]
    started, most = time.perf_counter(), 0
    with open(home / "train.log", "w") as log:
        process = subprocess.Popen(call, env=environment(), stdout=log, stderr=log)
        while process.poll() is None:
            most = max(most, resident(process.pid))
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"conjoint train: failed; {home}/train.log says why")
    return {"seconds": round(time.perf_counter() - started, 1), "peak_bytes": most}


def judge(home: Path) -> float:
    """Share of the empty labels that were predicted right."""
    truth = pl.read_parquet(home / "nodes.parquet", columns=["id", "label"]).cast(pl.String)
    shown = pl.read_csv(home / "nodes.csv", columns=["id", "label"], infer_schema=False)
    hidden = shown.filter(pl.col("label").is_null()).select("id")
    found = pl.read_csv(
        next((home / "run").rglob("predictions.csv")), columns=["id", "predicted"], infer_schema=False
    )
    joined = hidden.join(found, on="id").join(truth, on="id")
    assert len(joined) == len(hidden)
    return round(float((joined["predicted"] == joined["label"]).mean()), 4)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=float, required=True)
    parser.add_argument("--edges", type=float, required=True)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/scale/from_csv.jsonl"))
    parser.add_argument("more", nargs="*", help="arguments of conjoint train, behind --")
    chosen = parser.parse_args()
    nodes, edges = int(chosen.nodes), int(chosen.edges)
    home = chosen.scratch / f"csv-{nodes}-{edges}"
    paths = write_csv(home, nodes, edges, chosen.features)
    row = {"nodes": nodes, "edges": edges, "features": chosen.features, "more": chosen.more}
    row |= {"date": datetime.date.today().isoformat(), "load_before": round(os.getloadavg()[0], 1)}
    row |= {"csv_bytes": sum(path.stat().st_size for path in paths), **train(home, paths, chosen.more)}
    portfolio = next((home / "run").rglob("portfolio.json"), None)
    if portfolio is not None:
        found = json.loads(portfolio.read_text())
        row["weights"] = {one["name"]: one["weight"] for one in found["members"] if one["weight"] > 0}
        row["left_out"] = found["left_out"]
    row["right"] = judge(home)
    with open(chosen.out, "a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row))


if __name__ == "__main__":
    main()
