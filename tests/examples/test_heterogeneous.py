"""The example with two kinds of nodes runs, and its interventions pay."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "heterogeneous.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("heterogeneous_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_says_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    load().main()
    first, second = capsys.readouterr().out.splitlines()
    alone, conjoint = (float(line.rsplit(": ")[1]) for line in (first, second))
    assert conjoint > alone + 0.1
