"""What the repository holds, and whether the pages about it tell the truth."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from conjoint.cli import make_parser

ROOT = Path(__file__).resolve().parents[2]
# Data and pictures that belong to the package or its pages, each small and made by a script that is here too.
BINARIES = {"src/conjoint/data/embedded/cora.npz"}
PICTURES = (".png",)
# Run and graph folders as an earlier version wrote them; tests/golden/record.py made them.
RUNS, LARGEST_OF_RUNS = "tests/golden/runs/", 60_000
LARGEST = 500_000


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_there_are_no_binary_blobs(tracked: list[Path]) -> None:
    binary = []
    for path in tracked:
        name, content = path.relative_to(ROOT).as_posix(), path.read_bytes()
        is_text = b"\0" not in content
        picture = name.startswith("docs/") and path.suffix in PICTURES
        kept = name.startswith(RUNS) and path.suffix in (".npy", ".safetensors")
        if not (is_text or name in BINARIES or picture or kept):
            binary.append(name)
        assert not kept or len(content) < LARGEST_OF_RUNS, f"{name} is large"
        assert len(content) < LARGEST or is_text, f"{name} is large"
    assert binary == []


def test_nothing_that_runs_is_hidden_in_the_tree(tracked: list[Path]) -> None:
    for path in tracked:
        assert path.suffix not in (".so", ".dll", ".pyd", ".pyc", ".pkl", ".pickle", ".pt", ".exe", ".whl")
        assert path.read_bytes()[:4] not in (b"\x7fELF", b"MZ\x90\x00"), path


def promises() -> list[tuple[str, str]]:
    """(promise, test) of each row of the table in docs/promises.md."""
    rows = re.findall(r"^\| (.+?) \| `(tests/[^`]+)` \|$", (ROOT / "docs/promises.md").read_text(), re.M)
    return [(promise, test) for promise, test in rows]


def test_every_promise_names_a_test_that_exists() -> None:
    found = promises()
    assert len(found) >= 20
    for promise, test in found:
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), f"{promise}: no {file}"
        tree = ast.parse((ROOT / file).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in names, f"{promise}: {file} has no {name}"


def test_every_row_of_the_page_is_a_promise_with_a_test() -> None:
    lines = (ROOT / "docs/promises.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and line != "| promise | held by |"]
    assert len(rows) == len(promises()), "a row lacks its test, or is written in another way"


def test_every_dependency_is_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [
        line for extra in project["optional-dependencies"].values() for line in extra
    ]
    names = {re.split(r"[<>=\[ ]", line)[0] for line in wanted} - {"conjoint"}
    page = (ROOT / "docs/dependencies.md").read_text()
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_the_public_workflow_runs_what_ci_runs_and_builds_wheels() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = {name: [step.get("run", "") for step in job["steps"]] for name, job in jobs.items()}
    assert ".ci/run" in commands["check"] and (ROOT / ".ci/run").stat().st_mode & 0o111
    assert any(re.match(r"pipx run cibuildwheel==[\d.]+ ", line) for line in commands["wheels"])
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    _, *words = settings["test-command"].split()
    make_parser().parse_args(words)


def test_hooks_before_a_commit_check_what_ci_checks() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"  # nothing is fetched
    entries = [hook["entry"].removeprefix(".venv/bin/") for hook in repository["hooks"]]
    checks = (ROOT / "scripts/check.py").read_text()
    assert [entry.split(" --")[0] for entry in entries] == ["ruff format", "ruff check", "mypy"]
    assert all(f'("{tool}"' in checks for tool in ("ruff", "mypy"))


def test_forms_for_issues_can_be_filled_in() -> None:
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert len(forms) == 3
    for form in map(yaml.safe_load, (path.read_text() for path in forms)):
        assert {"name", "description", "body"} <= form.keys()
        fields = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({part["id"] for part in fields}) == len(fields) >= 2
        assert all(part["attributes"]["label"] for part in fields)
