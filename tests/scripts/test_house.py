"""A default training does once what needs to be done once, as `scripts/house.py` counts it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# With two seeds. Edges are sorted twice when they are tidied, once by target and once by source; SciPy's
# conversions are those of the decoys' graphs; three trainings are two seeds and the rival's.
AT_MOST = {
    "sorts of edges": 4,
    "conversions of edges by SciPy": 3,
    "hashes of the graph": 1,
    "splits made": 1,
    "trust fits": 1,
    "trainings": 3,
    "predictions of all nodes": 2,
    "calls of adjacency": 1,
    "transposes": 1,
    "calls of tidy_edges": 1,
}


def house(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "scripts" / "house.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_default_training_does_everything_once() -> None:
    found = house("--watch", "counts", "--seeds", "2")["totals"]
    assert found.keys() == AT_MOST.keys()
    assert {name: found[name] for name in AT_MOST if not 1 <= int(found[name]) <= AT_MOST[name]} == {}


def test_files_are_measured() -> None:
    found = house("--static", "--json")
    assert found["files"] == len(list((ROOT / "src").rglob("*.py")))
