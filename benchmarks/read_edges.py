"""10 million edges from CSV: time and peak memory of read_graph, beside pandas and polars on the same file.

    python benchmarks/read_edges.py            # makes the file in a temporary folder
    python benchmarks/read_edges.py --edges 1000000 --ids text

Each reader runs in its own process, so that each peak is its own. pandas and polars only parse the table;
read_graph also matches ids, drops duplicates and self-loops, and makes the graph undirected and sorted.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

READERS = ("conjoint", "pandas", "polars")


def make_file(path: Path, edges: int, nodes: int, ids: str) -> None:
    import polars as pl

    ends = np.random.default_rng(0).integers(0, nodes, size=(edges, 2))
    frame = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1]})
    if ids == "text":
        frame = frame.select(pl.format("paper-{}", name).alias(name) for name in frame.columns)
    frame.write_csv(path)


def read(reader: str, path: Path) -> dict[str, float | str]:
    """Import first, then measure: the question is the reading, not the libraries' start."""
    if reader == "conjoint":
        from conjoint.data import read_graph

        before = _peak()
        start, cpu_start = time.perf_counter(), time.process_time()
        read_graph(path, features="degree:2")
    elif reader == "pandas":
        import pandas as pd

        before = _peak()
        start, cpu_start = time.perf_counter(), time.process_time()
        pd.read_csv(path)
    else:
        import polars as pl

        before = _peak()
        start, cpu_start = time.perf_counter(), time.process_time()
        pl.read_csv(path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    return {
        "reader": reader,
        "seconds": seconds,
        "cpu": cpu,
        "import_mb": before,
        "peak_mb": _peak(),
    }


def _peak() -> float:
    """Peak resident memory in MB. (ru_maxrss survives exec: a child would start with its parent's peak.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--ids", choices=("number", "text"), default="number")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(read(options.one[0], Path(options.one[1]))))
        return
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        make_file(path, options.edges, options.nodes, options.ids)
        print(f"{options.edges:,} edges, {options.ids} ids, {path.stat().st_size / 2**20:.0f} MB")
        for reader in READERS:
            command = [sys.executable, __file__, "--one", reader, str(path)]
            runs = [
                json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                for _ in range(options.repeat)
            ]
            seconds, cpu = (sorted(run[key] for run in runs)[len(runs) // 2] for key in ("seconds", "cpu"))
            peak = max(run["peak_mb"] for run in runs)
            print(f"{reader:9} {seconds:6.2f} s, {cpu:6.2f} s of CPU (medians of {len(runs)}),", end=" ")
            print(f"peak {peak:.0f} MB, {runs[0]['import_mb']:.0f} MB of it before reading")
        print("load average", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
