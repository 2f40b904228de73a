"""One trained run, shared by the tests of all verbs that need one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from own_files import train_arguments, write_own_files

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the user's own files, pictures included."""
    folder = tmp_path_factory.mktemp("own")
    write_own_files(folder)
    out = folder / "run"
    status = main(train_arguments(folder, "--seeds", "1", "--epochs", "12", "--out", str(out), "--quiet"))
    assert status == 0
    return out


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command that must succeed with --json; the document."""

    def run(*arguments: object) -> Any:
        capsys.readouterr()
        status = main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must fail: exit code 2, one line on stderr, nothing on stdout. The line."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        status = main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert status == 2, err
        assert out == ""
        assert err.startswith("conjoint: ") and err.endswith("\n") and err.count("\n") == 1, err
        return err.removeprefix("conjoint: ").strip()

    return run
