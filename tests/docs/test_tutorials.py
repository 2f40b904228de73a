"""The tutorials run as they stand, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
MOST = 20_000  # bytes, outputs included


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["csv", "noisy", "pyg", "scikit-learn"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path: Path) -> None:
    assert path.stat().st_size < MOST
    environment = {name: value for name, value in os.environ.items() if name != "CONJOINT_DATA"}
    command = [sys.executable, str(ROOT / "scripts" / "tutorials.py"), str(path)]
    done = subprocess.run(command, env=environment | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
