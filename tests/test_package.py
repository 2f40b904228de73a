"""The package's front door."""

import subprocess
import sys

import pytest

import conjoint


def test_every_public_name_is_there() -> None:
    assert all(getattr(conjoint, name).__name__ == name for name in conjoint.__all__)
    homes = {name for names in conjoint._HOMES.values() for name in names}
    assert homes <= set(conjoint.__all__) <= set(dir(conjoint))


def test_an_unknown_name_is_an_attribute_error() -> None:
    misspelt = "CatConv"
    with pytest.raises(AttributeError, match="no attribute 'CatConv'"):
        getattr(conjoint, misspelt)


def test_importing_is_light() -> None:
    heavy = "torch", "sklearn", "polars", "matplotlib", "networkx"
    code = f"import sys, conjoint; print(*set({heavy}) & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "\n"), ran.stderr
