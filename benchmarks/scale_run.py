"""Ingest, one epoch and full prediction of made graphs: seconds and peak memory, one JSON row per size.

python -m benchmarks.scale_run --sizes 5e6:5e7 --scratch /opt/scale --out results/scale/sizes.jsonl

Peak memory is what the system counted for the process (ru_maxrss), pages of mapped files included.
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .measure import environment
from .scale_graph import write_tables

STAGES = ("tables", "ingest", "train", "predict")
BATCH = ("--batch", "neighbours", "--batch-size", "4096", "--fanout", "10,5")


def measured(*arguments: str) -> dict[str, Any]:
    """Run one command of conjoint; seconds of wall and processor time, and peak memory in bytes."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "conjoint", *arguments, "--quiet"], env=environment())
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: failed with status {status}")
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_bytes": 1024 * used.ru_maxrss,
    }


def run_stage(stage: str, nodes: int, edges: int, features: int, home: Path) -> dict[str, Any]:
    """One stage; what it measured. Each leaves behind what the next one reads."""
    tables = home / "edges.parquet", home / "nodes.parquet"
    graph, run = home / "graph", home / "run"
    if stage == "tables":
        write_tables(home, nodes, edges, features)
        return {"tables_bytes": sum(path.stat().st_size for path in tables)}
    if stage == "ingest":
        where = ("--edges", str(tables[0]), "--nodes", str(tables[1]))
        columns = ("--label", "label", "--split-column", "part")
        found = measured("ingest", *where, *columns, "--out", str(graph))
        entries = json.loads((graph / "manifest.json").read_text())["entries"]
        size = sum(path.stat().st_size for path in graph.iterdir())
        return {"ingest": found, "folder_bytes": size, "entries": entries}
    if stage == "train":
        found = measured("train", str(graph), *BATCH, "--epochs", "1", "--seed", "0", "--out", str(run))
        result = json.loads((run / "result.json").read_text())
        return {"train": found, "epoch_seconds": result["seconds"], "test_accuracy": result["test_accuracy"]}
    return {"predict": measured("predict", str(run), "--out", str(home / "predictions.parquet"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", required=True, metavar="NODES:EDGES")
    parser.add_argument(
        "--stages", nargs="+", default=STAGES, choices=STAGES, help="go on where another call ended"
    )
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/scale/sizes.jsonl"))
    chosen = parser.parse_args()
    for size in chosen.sizes:
        nodes, edges = (int(float(number)) for number in size.split(":"))
        home = chosen.scratch / f"graph-{nodes}-{edges}"
        kept = home / "row.json"
        row = json.loads(kept.read_text()) if kept.exists() else {"nodes": nodes, "edges": edges}
        row |= {"features": chosen.features, "batch": list(BATCH), "date": datetime.date.today().isoformat()}
        for stage in chosen.stages:
            load = os.getloadavg()[0]
            row |= run_stage(stage, nodes, edges, chosen.features, home)
            row |= {
                "threads": os.environ.get("OMP_NUM_THREADS", "all"),
                f"load_before_{stage}": round(load, 1),
            }
            kept.write_text(json.dumps(row))
        if "predict" in row:
            shutil.rmtree(home)
            chosen.out.parent.mkdir(parents=True, exist_ok=True)
            with open(chosen.out, "a") as file:
                file.write(json.dumps(row) + "\n")
        print(json.dumps(row))


if __name__ == "__main__":
    main()
