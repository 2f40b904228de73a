"""A checkout adds its own experiments; without one there are the paper's, and a remedy for the rest."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conjoint.experiments.extension import extension
from conjoint.experiments.grid import PAPER, experiment_names, read_toml
from conjoint.experiments.rows import append_row
from fake_rows import rows_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel leaves it: no checkout around it."""
    home = tmp_path_factory.mktemp("site")
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "conjoint", home / "conjoint", ignore=unneeded)
    return home


def conjoint(installed: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-m", "conjoint", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def names(done: "subprocess.CompletedProcess[str]") -> list[str]:
    return [line["table"] for line in json.loads(done.stdout)["experiments"]]


def test_a_checkout_adds_its_grids() -> None:
    assert [grid.parent for grid in extension().grids] == [ROOT / "research"] * 3
    assert {"table1", "robust-edges", "recipe"} < set(experiment_names())


def test_without_one_there_are_the_papers_tables(installed: Path, tmp_path: Path) -> None:
    assert names(conjoint(installed, tmp_path, "reproduce", "--json")) == list(
        read_toml(PAPER)["experiments"]
    )
    asked = conjoint(installed, tmp_path, "reproduce", "robust-edges")
    assert asked.returncode == 2 and asked.stderr.count("\n") == 1
    assert "'robust-edges' is not known" in asked.stderr and "clone the repository" in asked.stderr


def test_without_one_the_report_has_no_explorer_and_says_so(installed: Path, tmp_path: Path) -> None:
    append_row(tmp_path / "results", rows_of("random-splits")[0])
    append_row(tmp_path / "results", rows_of("robust-edges")[-1])  # of a table that is not there
    done = conjoint(installed, tmp_path, "report")
    assert done.returncode == 0 and "no attention explorer" in done.stderr
    assert "clone the repository" in done.stderr and done.stderr.count("\n") == 1
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Made from 2 training runs." in page and "robust-edges" not in page


def test_an_installed_package_finds_the_checkout_it_is_called_in(installed: Path, tmp_path: Path) -> None:
    assert names(conjoint(installed, ROOT, "reproduce", "--json")) == experiment_names()
    done = conjoint(
        installed, ROOT, "reproduce", "auto", "--quick", "--only", "citeseer", "--results", str(tmp_path)
    )
    assert done.returncode == 2 and "auto has no runs there" in done.stderr


def test_another_projects_research_is_left_alone(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "research").mkdir()
    (tmp_path / "research" / "__init__.py").write_text("raise SystemExit('run by mistake')\n")
    for project in ("", "[project]\nname = 'other'\n", "conjoint = ["):
        (tmp_path / "pyproject.toml").write_text(project)
        assert len(names(conjoint(installed, tmp_path, "reproduce", "--json"))) == len(
            read_toml(PAPER)["experiments"]
        )
