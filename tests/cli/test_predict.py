"""conjoint predict --new-nodes: nodes that came after training, by their own ids."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from own_files import CLASSES, node_name, train_arguments, write_own_files
from small_training import small_data


@pytest.fixture(scope="module", params=["cat-i-mf", "cat-e-smooth"])
def with_new(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run on the first fifty nodes, and tables with the other ten."""
    folder = tmp_path_factory.mktemp("with_new")
    edges, nodes = write_own_files(folder, unlabelled=0)
    later = {node_name(k) for k in range(50, 60)}
    divide(edges, folder / "new_edges.csv", lambda row: row[0] in later or row[1] in later)
    divide(nodes, folder / "new_nodes.csv", lambda row: row[0] in later)
    arguments = train_arguments(folder, "--model", request.param, "--seeds", 1, "--epochs", 40)
    assert main([*arguments, "--no-plots", "--quiet", "--out", str(folder / "run")]) == 0
    yield folder


def divide(path: Path, other: Path, moves: Callable[[list[str]], bool]) -> None:
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    for target, chosen in ((path, False), (other, True)):
        with open(target, "w", newline="") as file:
            csv.writer(file).writerows([head, *(row for row in rows if moves(row) is chosen)])


def new(folder: Path) -> list[str]:
    tables = ("--new-nodes", folder / "new_nodes.csv", "--new-edges", folder / "new_edges.csv")
    return ["predict", str(folder / "run"), *map(str, tables)]


def test_only_the_new_nodes_are_predicted_and_mostly_right(with_new: Path, ask: Callable[..., Any]) -> None:
    found = ask(*new(with_new), "--rows", "100")
    assert [row["id"] for row in found["rows"]] == [node_name(k) for k in range(50, 60)]
    assert {row["part"] for row in found["rows"]} == {"new"}
    truth = [CLASSES[c] for c in small_data().y[50:].tolist()]
    assert [row["label"] for row in found["rows"]] == truth
    assert sum(row["predicted"] == row["label"] for row in found["rows"]) >= 6
    assert sum(v for k, v in found["rows"][0].items() if k.startswith("p(")) == pytest.approx(1.0, abs=1e-5)


def test_labels_may_be_missing(with_new: Path, tmp_path: Path, ask: Callable[..., Any]) -> None:
    with open(with_new / "new_nodes.csv", newline="") as file:
        rows = [[row[0], *row[2:]] for row in csv.reader(file)]
    with open(tmp_path / "bare.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    options = ("--new-nodes", tmp_path / "bare.csv", "--new-edges", with_new / "new_edges.csv")
    told = ask("predict", with_new / "run", *options, "--rows", "100")
    same = ask(*new(with_new), "--rows", "100")
    assert {row["label"] for row in told["rows"]} == {""}
    assert [row["predicted"] for row in told["rows"]] == [row["predicted"] for row in same["rows"]]


def test_mistakes_are_one_line(with_new: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    run = with_new / "run"
    assert "go together" in refuse("predict", run, "--new-nodes", with_new / "new_nodes.csv")
    short = tmp_path / "short.csv"
    short.write_text("id,f0\nzoe,1\n")
    edges = ("--new-edges", with_new / "new_edges.csv")
    assert "has no column 'f1'" in refuse("predict", run, "--new-nodes", short, *edges)
    twice = ("--new-nodes", with_new / "nodes.csv", "--new-edges", with_new / "edges.csv")
    assert "stands in row" in refuse("predict", run, *twice)
