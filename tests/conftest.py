"""What every test may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure: examples are bounded in number, not in time.
settings.register_profile("conjoint", deadline=None)
settings.load_profile("conjoint")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the benchmarks' raw files; tests that need it are skipped where it is not named."""
    folder = os.environ.get("CONJOINT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CONJOINT_DATA names no folder with the benchmarks' raw files")
    return Path(folder)
