"""Every block of code in the README and the pages runs as it stands, made short as SHORTER says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from blocks import blocks as communities
from conjoint.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "research/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
CODE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.S | re.M)

# Lines that are not run, by how they begin and why. Whatever is not here runs.
NOT_RUN = {
    "installs packages: CI itself is the second of the README, scripts/try_install.py does the first": [
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt ",
        "python scripts/try_install.py",
    ],
    "asks public databases": ["pipx run pip-audit "],
    "compiles into the package: tests/kernels/test_library.py does so elsewhere": [
        "python -m conjoint.kernels"
    ],
    "takes minutes or hours: what it calls has tests of its own": [
        "CONJOINT_DATA=path/to/data python -m research.baselines",
        "python -m benchmarks.run",
        "python -m benchmarks.layers",
        "python -m benchmarks.members",
        "python -m benchmarks.interventions",
        "python -m benchmarks.from_csv ",
        "python -m benchmarks.scale_run ",
        "python -m benchmarks.scale_accuracy ",
        "python -m benchmarks.scale_ranks ",
        "python scripts/mutants.py ",
        "python scripts/fuzz.py ",
        "python scripts/faults.py ",
        "conjoint reproduce random-splits --quick",
        "conjoint reproduce table1 ",
    ],
    "writes over a picture of the docs": ["python -m benchmarks.scale_plot "],
    "many processes: tests/training/test_ranks.py starts them": ["torchrun "],
    "needs raw files of benchmarks": [
        "export CONJOINT_DATA=...",
        'data = load("pubmed", root="~/graphs")',
        'data = load("ogbn-arxiv", features="spectral:128")',
        'split = make_split(data, "time")',
    ],
}
# What is written shorter to run, and how.
SHORTER = {
    "range(200)": "range(2)",
    'label="topic")': 'label="topic", trials=2, train={"epochs": 2})',
    "Transductive(CATClassifier(random_state=0)": 'Transductive(CATClassifier(model="gcn", epochs=2)',
    "CATClassifier(random_state=0)": "CATClassifier(random_state=0, trials=2, epochs=2)",
    "GridSearchCV(CATClassifier(),": "GridSearchCV(CATClassifier(epochs=2),",
    '["rescat-i-mf", "cat-e-smooth", "gcn"]}': '["gcn"]}, cv=2',
    "cv=5": "cv=2",
    "TrainConfig(lr=0.005)": "TrainConfig(lr=0.005, epochs=2)",
    "TrainConfig(seed=0)": "TrainConfig(seed=0, epochs=2)",
    '{**defaults.TRAIN, "seed": 0}': '{**defaults.TRAIN, "seed": 0, "epochs": 2}',
}
# Options that a verb gets besides.
QUICK = {
    "train": ["--epochs", "2", "--seed", "0", "--no-plots", "--no-report", "--quiet"],
    "tune": ["--trials", "1", "--trial-epochs", "2", "--trial-seeds", "1", "--quiet"],
    "explain": ["--candidates", "4", "--quiet"],
}
ALONE = {"--batch", "--model", "--config"}  # with one of these no ensemble is learnt
# Names that a page says the reader has.
LAYERS = "from conjoint import CAT, CATConv, MatrixFactorization; x, num_nodes = torch.rand(60, 6), 60\n"
LAYERS += "edge_index = torch.randint(0, 60, (2, 300)); intervention = MatrixFactorization(60, rank=3)\n"
LAYERS += "model = CAT(6, 4, 3, intervention='smooth')\n"
LAYERS += "conv1, conv2 = (CATConv(n, 4, heads=2, intervention=intervention) for n in (6, 8))"
TABLES = "import polars; edges, nodes = (polars.read_csv(f'{name}.csv') for name in ('edges', 'nodes'))"
GIVEN = {"layer.md": LAYERS, "learner.md": TABLES}


def code(page: Path) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in CODE.finditer(page.read_text("utf-8"))]


def bare(line: str) -> str:
    """Without a prompt and the remark behind it."""
    return re.sub(r"  # .*$|^\$ ", "", line).strip()


def runs(line: str) -> bool:
    return not any(bare(line).startswith(start) for starts in NOT_RUN.values() for start in starts)


def has_code(page: Path) -> bool:
    return any(not language.startswith("{") for language, _ in code(page))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages speak of: papers and people, their links, and who joined later."""
    folder = tmp_path_factory.mktemp("tables")
    made = communities(60)
    pairs = np.argwhere(np.triu(made.graph.toarray()))
    topics = [None if k % 5 == 0 else ["maps", "music", "plants"][team] for k, team in enumerate(made.truth)]
    papers = pl.DataFrame({"id": [f"paper-{k}" for k in range(60)], "topic": topics, "subject": topics})
    words = pl.Series(
        "abstract",
        [f"on {['paths', 'songs', 'roots'][team]} and {k % 7}" for k, team in enumerate(made.truth)],
    )
    papers.drop("subject").with_columns(size=made.x[:, 0]).write_csv(folder / "nodes.csv")
    ends = {"source": [f"paper-{i}" for i, _ in pairs], "target": [f"paper-{j}" for _, j in pairs]}
    pl.DataFrame({**ends, "strength": [1.0 + (k % 3) for k in range(len(pairs))]}).write_csv(
        folder / "edges.csv"
    )
    papers.drop("topic").with_columns(words).write_csv(folder / "subjects.csv")
    meetings = {f"meetings{k}": made.x[:, k] for k in range(6)}
    people = pl.DataFrame({"id": range(60), "team": topics, **meetings})
    links = pl.DataFrame({"from": pairs[:, 0], "to": pairs[:, 1]})
    people.write_csv(folder / "people.csv")
    links.write_csv(folder / "links.csv")
    use = pl.Series("use", [t and ["train", "val", "test"][k % 4 % 3] for k, t in enumerate(topics)])
    people.with_columns(use).write_parquet(folder / "people.parquet")
    links.write_parquet(folder / "links.parquet")
    people.head(2).with_columns(id=pl.Series([60, 61]), team=pl.lit(None)).write_csv(folder / "joined.csv")
    pl.DataFrame({"from": [60, 61], "to": [0, 1]}).write_csv(folder / "new-links.csv")
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=lambda page: page.stem)
@pytest.mark.filterwarnings("default")
def test_a_page_runs(page: Path, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    shutil.copytree(tables, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    torch.manual_seed(0)
    made = communities(60)
    names: dict[str, Any] = {"X": made.x, "y": made.truth, "A": made.graph, "torch": torch}
    exec(GIVEN.get(page.name, ""), names)
    if page.name == "data.md":  # its nodes have a text
        shutil.move("subjects.csv", "nodes.csv")
    if page.name == "diagnose.md":  # speaks of a run
        command("conjoint train --edges links.csv --nodes people.csv --label team --out runs/teams")
    if page.name == "reproduce.md":  # and of rows
        (folder / "results").mkdir()
        shutil.copy(ROOT / "results" / "ogbn-arxiv.jsonl", folder / "results")
        shutil.copytree(ROOT / "results" / "report", folder / "results" / "report")
    for language, text in code(page):
        if language == "python":
            for old, new in SHORTER.items():
                text = text.replace(old, new)
            lines = [line for line in text.splitlines() if runs(line)]
            exec(compile("\n".join(lines), f"{page.name}: python", "exec"), names)
        elif not language.startswith("{"):
            for line in filter(None, map(bare, text.splitlines())):
                if runs(line):
                    command(line)


def command(line: str) -> None:
    verb, *words = shlex.split(line)
    if verb == "conjoint":
        more = QUICK.get(words[0], [])
        if words[0] == "train" and not ALONE & set(words):
            more = [*more, "--trials", "2"]
        assert main([*words, *more]) == 0, line
    else:  # in a shell of its own, in the checkout if it asks for Python
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        line = line.replace(
            "conjoint train", f"python -m conjoint train {shlex.join(QUICK['train'])} --trials 1"
        )
        where = ROOT if verb == "python" else None
        done = subprocess.run(
            ["bash", "-c", line], cwd=where, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}: {done.stderr[-2000:]}"


def test_every_block_is_of_a_kind_that_runs() -> None:
    others = {language for page in PAGES for language, _ in code(page)} - {"python", "sh", "console"}
    assert [language for language in others if not language.startswith("{")] == [], "name its language"


def test_lists_name_nothing_that_is_gone() -> None:
    text = "\n".join(text for page in PAGES for _, text in code(page))
    lines = list(map(bare, text.splitlines()))
    starts = [start for starts in NOT_RUN.values() for start in starts]
    assert [start for start in starts if not any(line.startswith(start) for line in lines)] == []
    assert [part for part in SHORTER if part not in text] == []


def test_the_readme_begins_with_two_commands_and_short_examples() -> None:
    found = code(ROOT / "README.md")
    run, check = (text.strip().splitlines() for language, text in found[:2])
    assert [language for language, _ in found[:2]] == ["sh", "sh"] and len(run) == len(check) == 1
    assert run[0].endswith("conjoint train") and check[0].endswith("scripts/check.py")
    assert all(len(text.splitlines()) <= 12 for _, text in found)
