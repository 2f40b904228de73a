"""Throw damaged files at every reader, each in processes of its own, and write down how many were tried.

    python scripts/fuzz.py --inputs 1000000 --out results/fuzz.json

A process that is killed by a signal, hangs or ends with an error counts as a find, as does any outcome but a
value or one line. With --out, what an earlier call has done is kept and added to; the command can be stopped
and goes on. Where the summary says 0 finds, nothing but values and one-line refusals ever came out.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHUNK = 20_000

# Inputs a reader gets in proportion: those that do little per input get more.
SHARES = {
    "csv": 5,
    "csv.gz": 5,
    "parquet": 12,
    "npz": 7,
    "graphml": 14,
    "plan.toml": 4,
    "run config.toml": 10,
    "run model.json": 7,
    "run metrics.jsonl": 6,
    "run node_ids.npy": 8,
    "run weights.safetensors": 8,
    "run checkpoint.safetensors": 8,
    "rows.jsonl": 8,
    "portrait.json": 8,
    "graph manifest.json": 4,
    "graph rowptr.npy": 2,
    "graph col.npy": 2,
    "graph y.npy": 2,
    "graph ids.npy": 2,
}
SUMS = ("inputs", "values", "refusals", "seconds")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all (default: a million)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file to keep the counts in")
    parser.add_argument("--only", help="one reader")
    parser.add_argument("--save", action="store_true", help="keep inputs that reach new lines in the corpus")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out and options.out.exists() else {"readers": {}}
    readers: dict[str, Any] = kept["readers"]
    total = sum(SHARES.values())
    wanted = {name: options.inputs * share // total + 1 for name, share in SHARES.items()}
    if options.only:
        wanted = {options.only: options.inputs}
    for turn in range(
        max(wanted.values()) // CHUNK + 1
    ):  # a chunk of each in turn: a stop leaves no reader out
        for name, count in wanted.items():
            about = readers.setdefault(name, {"seeds": [], "finds": []})
            if about.get("inputs", 0) >= count or len(about["seeds"]) > turn:
                continue
            seed = options.seed * 1000 + turn
            todo = min(CHUNK, count - about.get("inputs", 0))
            _add(about, _child(name, todo, seed, options.save), seed)
            if options.out:
                _write(options.out, _document(readers))
            print(
                f"{name}: {about['inputs']} inputs, {len(about['finds'])} finds", file=sys.stderr, flush=True
            )
    document = _document(readers)
    print(json.dumps({key: document[key] for key in ("inputs", "values", "refusals", "seconds", "finds")}))
    return 1 if document["finds"] else 0


def _child(name: str, count: int, seed: int, save: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "fuzz.campaign", name, "--count", str(count), "--seed", str(seed)]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    began = time.perf_counter()
    done = subprocess.run(
        [*command, "--save"] if save else command, env=environment, capture_output=True, text=True
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        error = f"the process ended with status {done.returncode}: {done.stderr[-2000:]}"
        seconds = round(time.perf_counter() - began, 1)
        return {"seconds": seconds, "finds": [{"error": error, "input": f"seed {seed}"}]}


def _add(about: dict[str, Any], tally: dict[str, Any], seed: int) -> None:
    for name in SUMS:
        about[name] = round(about.get(name, 0) + tally.get(name, 0), 1)
    for name in ("slowest", "grown_mib", "different_refusals", "lines"):
        about[name] = max(about.get(name, 0), tally.get(name, 0))
    about["seeds"].append(seed)
    about["finds"] += tally["finds"]


def _document(readers: dict[str, Any]) -> dict[str, Any]:
    sums = {name: round(sum(about.get(name, 0) for about in readers.values()), 1) for name in SUMS}
    finds = sum(len(about["finds"]) for about in readers.values())
    return {**sums, "finds": finds, "python": sys.version.split()[0], "readers": readers}


def _write(path: Path, document: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(beside, path)


if __name__ == "__main__":
    raise SystemExit(main())
