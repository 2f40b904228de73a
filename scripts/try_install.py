"""Build the wheel and the source archive, install each in an environment of its own, and use it.

    python scripts/try_install.py wheel sdist oldest newest

wheel    the wheel with the versions of constraints.txt
sdist    the source archive on a machine without a C compiler, likewise
oldest   the lowest version that each range in pyproject.toml admits
newest   the highest that pip finds

torch is the exception in the last two: other versions than the one at hand pull gigabytes, so it is taken
from constraints.txt unless --torch names another. Prints one JSON line per environment.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = ("wheel", "sdist", "oldest", "newest")
USE = """
import numpy as np, conjoint
from conjoint import CATClassifier, load, read_graph
from conjoint.data import write_table
data = load("cora")
small = np.arange(200)
labels = data.y.numpy()[small].copy()
labels[100:] = -1
edges = data.edge_index.numpy()
edges = edges[:, (edges < 200).all(axis=0)]
model = CATClassifier(random_state=0, epochs=3).fit(data.x.to_dense().numpy()[small], labels, graph=edges)
assert model.predict_proba(data.x.to_dense().numpy()[small]).shape[0] == 200
write_table("e.csv", {"source": ["a", "b", "c"], "target": ["b", "c", "a"]})
write_table("n.parquet", {"id": ["a", "b", "c"], "f": [1.0, 2.0, 3.0], "label": ["x", "y", None]})
assert read_graph("e.csv", "n.parquet").num_nodes == 3
"""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("doctor",),
    ("train", "cora", "--epochs", "3", "--seeds", "1", "--out", "run", "--quiet"),
    ("predict", "run", "--out", "p.csv"),
    ("predict", "run", "--out", "p.parquet"),
    ("embed", "run", "--out", "v.csv"),
    ("cluster", "run"),
    ("explain", "run", "31336", "--plot", "why.svg"),
    ("describe", "cat-i-mf", "--nodes", "100", "--features", "10", "--classes", "3"),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help="default: all four")
    parser.add_argument("--torch", help="a version of torch for oldest and newest")
    options = parser.parse_args()
    for case in options.cases:
        if case not in CASES:
            parser.error(f"{case} is not one of {', '.join(CASES)}")
    bad = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], folder)
        wheel, sdist = next(folder.glob("dist/*.whl")), next(folder.glob("dist/*.tar.gz"))
        _look_inside(wheel, sdist)
        for case in options.cases:
            trouble = _try(case, sdist if case == "sdist" else wheel, folder, options.torch)
            bad |= trouble is not None
    return int(bad)


def _look_inside(wheel: Path, sdist: Path) -> None:
    """Nothing compiled in the source archive; libraries, licences and data in the wheel."""
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        assert not [name for name in names if name.endswith((".so", ".pyc", ".dll"))], (
            "compiled files in the sdist"
        )
        assert any(name.endswith("kernels/csrc/float32.c") for name in names), "the C sources are missing"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for part in (
            "data/embedded/cora.npz",
            "cli/options.toml",
            "experiments/paper.toml",
            "experiments/page/page.html",
            "py.typed",
            "LICENSE",
        ):
            assert any(name.endswith(part) for name in names), f"{part} is missing from the wheel"
        assert not [name for name in names if name.startswith(("tests", "scripts", "research"))], (
            "tests in the wheel"
        )


def _try(case: str, package: Path, folder: Path, torch: str | None) -> str | None:
    """None, or what went wrong, printed as a line of JSON with the versions that were installed."""
    home = folder / case
    venv.create(home / "env", with_pip=True)
    python = home / "env" / "bin" / "python"
    limits = home / "limits.txt"
    limits.write_text(_limits(case, torch))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if case == "sdist":
        environment["CC"] = "/bin/false"
    trouble = None
    try:
        _run([str(python), "-m", "pip", "install", "-q", "-c", str(limits), str(package)], home, environment)
        _run([str(python), "-c", USE], home, environment)
        for words in COMMANDS:
            _run([str(python), "-m", "conjoint", *words], home, environment)
    except RuntimeError as error:
        trouble = str(error)
    listed = subprocess.run([str(python), "-m", "pip", "freeze"], capture_output=True, text=True).stdout
    wanted = {name.lower() for name, _ in _ranges()}
    versions = {
        line.split("==")[0].lower().replace("_", "-"): line.split("==")[1]
        for line in listed.splitlines()
        if "==" in line and line.split("==")[0].lower().replace("_", "-") in wanted
    }
    print(json.dumps({"case": case, "trouble": trouble, "versions": versions}), flush=True)
    return trouble


def _ranges() -> list[tuple[str, str]]:
    """(name, lowest version) of each dependency."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = [re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+).*", line) for line in lines]
    return [(match[1], match[2]) for match in found if match]


def _limits(case: str, torch: str | None) -> str:
    pinned = (ROOT / "constraints.txt").read_text()
    if case in ("wheel", "sdist"):
        return pinned
    at_hand = re.search(r"^torch==(.+)$", pinned, re.M)
    version = torch or (at_hand[1] if at_hand else None)
    lines = [f"torch=={version}"] if version else []
    if case == "oldest":
        lines += [f"{name}=={_padded(low)}" for name, low in _ranges() if name != "torch"]
    return "\n".join(lines) + "\n"


def _padded(version: str) -> str:
    """1.26 means 1.26.0, the first of its line."""
    return version if version.count(".") >= 2 else f"{version}.0"


def _run(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise RuntimeError(f"{' '.join(command[1:6])[:120]}: {said}")


if __name__ == "__main__":
    raise SystemExit(main())
