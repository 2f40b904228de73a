"""The program as a user starts it, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}


def start(*words: object, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    """`before` runs in the new process, right before the program."""
    return subprocess.Popen(
        [sys.executable, "-m", "conjoint", *map(str, words)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )


def one_line(error: str) -> str:
    """What stderr holds must be one line of ours, never a traceback."""
    assert error.startswith("conjoint: ") and error.count("\n") == 1, error
    return error.removeprefix("conjoint: ").strip()
