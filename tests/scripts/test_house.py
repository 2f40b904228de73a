"""A default training does once what needs to be done once, as `scripts/house.py` counts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from conjoint.selection.members import MEMBERS

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 2
TRAININGS = SEEDS * len(MEMBERS)
# Edges are sorted twice when they are tidied, once by target and once by source. SciPy's conversions are
# those of the decoys' graphs, of eigenvectors, of roles and of the report's components, and the transpose of
# each logistic regression. An ensemble divides rows of features by itself, so that trust is fitted anew if a
# member of weight reads them. All nodes are predicted once by each training and once by the ensemble.
AT_MOST = {
    "sorts of edges": 4,
    "conversions of edges by SciPy": 12 + SEEDS * sum(one.kind == "logistic" for one in MEMBERS),
    "hashes of the graph": 1,
    "splits made": 1,
    "trust fits": 2,
    "trainings": TRAININGS,
    "predictions of all nodes": TRAININGS + SEEDS,
    "calls of adjacency": 1,
    "transposes": 1,
    "calls of tidy_edges": 1,
}


def house(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "scripts" / "house.py"), *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # members are trained in the process that is looked at
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_default_training_does_everything_once() -> None:
    found = house("--watch", "counts", "--seeds", str(SEEDS))["totals"]
    assert found.keys() == AT_MOST.keys()
    assert {name: found[name] for name in AT_MOST if not 1 <= int(found[name]) <= AT_MOST[name]} == {}


def test_files_are_measured() -> None:
    found = house("--static", "--json")
    assert found["files"] == len(list((ROOT / "src").rglob("*.py")))
