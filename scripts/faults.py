"""The long version of the fault suite, with a summary: kills, faults, inputs, steps.

    python scripts/faults.py --out results/reliability.json
    python scripts/faults.py --summary        what the files in results/ say

Some ten minutes on one core. The inputs are those of `scripts/fuzz.py`, whose own file is read.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/faults/test_storage.py", "tests/faults/test_processes.py", "tests/faults/test_numbers.py")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=220)
    parser.add_argument("--steps", type=int, default=10_000, help="training steps of the search for leaks")
    parser.add_argument("--seed", type=int, default=1, help="of the kills")
    parser.add_argument("--fuzz", type=Path, default=ROOT / "results" / "fuzz.json", help="counts of fuzz.py")
    parser.add_argument("--out", type=Path, help="JSON file for the summary")
    parser.add_argument("--summary", action="store_true", help="do nothing, print what was done last")
    options = parser.parse_args()
    if options.summary:
        kept = options.out or ROOT / "results" / "reliability.json"
        return _tell(json.loads(kept.read_text()), _inputs(options.fuzz))
    began = time.perf_counter()
    summary: dict[str, Any] = {
        "kills": _json("faults.kills", "--kills", options.kills, "--seed", options.seed),
        "leaks": _json("faults.leaks", "--steps", options.steps),
        "faults": _faults(),
    }
    summary["seconds"] = round(time.perf_counter() - began, 1)
    summary["commit"] = _commit()
    if options.out:
        beside = options.out.with_name(f".{options.out.name}.tmp")
        beside.write_text(json.dumps(summary, indent=1) + "\n")
        os.replace(beside, options.out)
    return _tell(summary, _inputs(options.fuzz))


def _tell(summary: dict[str, Any], inputs: dict[str, Any]) -> int:
    kills, faults, leaks = (summary[name] for name in ("kills", "faults", "leaks"))
    print(f"{kills['kills']} kills (seed {kills['seed']}), {len(kills['lost'])} with something lost")
    print(f"{faults['tried']} faults tried, {faults['failed']} with something lost")
    print(f"{inputs['inputs']} damaged inputs, {inputs['finds']} with anything but a value or one line")
    print(f"{leaks['steps']} steps: {leaks['first']} at first, {leaks['last']} at last")
    return 1 if kills["lost"] or faults["failed"] or inputs["finds"] else 0


def _environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


def _json(module: str, *words: object) -> dict[str, Any]:
    """What a module of tests/faults prints. Its complaints go to stderr as they come."""
    command = [sys.executable, "-W", "ignore", "-m", module, *map(str, words)]
    done = subprocess.run(command, env=_environment(), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def _faults() -> dict[str, int]:
    """Each test is a fault: a full disk of one size, a memory limit, one diverging rate."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *TESTS]
        subprocess.run(command, env=_environment(), stdout=sys.stderr, cwd=ROOT)
        suite = ElementTree.parse(report).getroot()[0].attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    return {"tried": int(suite["tests"]) - int(suite["skipped"]), "failed": failed}


def _inputs(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"inputs": 0, "finds": 0}
    document = json.loads(path.read_text())
    return {name: document[name] for name in ("inputs", "values", "refusals", "seconds", "finds")}


def _commit() -> str | None:
    done = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or None


if __name__ == "__main__":
    raise SystemExit(main())
