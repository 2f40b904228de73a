"""What the repository holds, and whether the pages about it tell the truth."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

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
