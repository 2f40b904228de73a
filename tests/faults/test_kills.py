"""A short run of the kills; the long one is `python scripts/faults.py`."""

import json
import os
import subprocess
import sys

import pytest

from faults.program import ENVIRONMENT

KILLS = 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork their children")
@pytest.mark.timeout(400)
def test_whatever_is_killed_ends_as_if_nothing_had_happened() -> None:
    command = [sys.executable, "-m", "faults.kills", "--kills", str(KILLS), "--seed", "3"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["lost"] == [] and result["kills"] >= KILLS
    assert all(target["works"] >= 1 for target in result["targets"].values())
