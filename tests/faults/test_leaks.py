"""A process that trains for long stays as it is; one that only imports does nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faults.program import ENVIRONMENT

# Everything that a process does at import, by Python's own audit hooks, which C code raises too.
WATCHED_IMPORT = """
import sys
if len(sys.argv) > 1:  # what these do at import is not ours
    import matplotlib, polars, safetensors.torch, sklearn.utils, torch, torch_geometric.nn
seen = []
def hook(event, arguments):
    if event.startswith(("socket.", "urllib", "subprocess", "os.system", "os.mkdir", "os.remove")):
        seen.append(f"{event} {arguments!r:.200}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append(f"open for writing {arguments[0]!r}")
sys.addaudithook(hook)
import conjoint
if len(sys.argv) > 1:
    conjoint.CAT, conjoint.CATClassifier, conjoint.load, conjoint.fit
print([event for event in seen if "__pycache__" not in event])
"""


@pytest.mark.timeout(400)
def test_a_thousand_steps_leave_memory_handles_and_threads_as_they_were() -> None:
    command = [sys.executable, "-m", "faults.leaks", "--steps", "1000"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["steps"] >= 1000
    assert found["last"]["handles"] == found["first"]["handles"]
    assert found["last"]["threads"] <= found["first"]["threads"]
    assert found["last"]["rss_mib"] - found["first"]["rss_mib"] < 15


@pytest.mark.parametrize("words", [[], ["everything"]])
def test_importing_reaches_no_network_and_writes_nothing(words: list[str], tmp_path: Path) -> None:
    """The bytecode that Python itself keeps is not ours."""
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", WATCHED_IMPORT, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert words or list(tmp_path.iterdir()) == []  # matplotlib makes a folder for its settings


def test_importing_takes_less_than_two_seconds_of_work() -> None:
    """Of processor time: how long a busy machine makes us wait says nothing about the program."""
    code = "import time, conjoint; print(time.process_time())"
    times = [
        float(subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True).stdout)
        for _ in range(2)
    ]
    assert min(times) < 2
