"""conjoint train --intervention: by name, or chosen by validation and written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint import defaults as recommended
from conjoint.cli import main
from own_files import train_arguments, write_own_files


@pytest.fixture
def own(tmp_path: Path) -> list[str]:
    write_own_files(tmp_path)
    return [*train_arguments(tmp_path), "--epochs", "4", "--no-plots", "--out", str(tmp_path / "run")]


def test_auto_chooses_writes_down_why_and_trains_what_it_chose(
    own: list[str], tmp_path: Path, ask: Callable[..., Any]
) -> None:
    told = ask(*own, "--intervention", "auto", "--seeds", "2")
    kept = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert kept == told["choice"]
    assert {row["model"] for row in told["rows"]} == {kept["model"]} and kept["model"] in kept["candidates"]
    assert kept["diagnosis"]["evidence"] and len(kept["trials"]) > len(kept["candidates"])
    again = ask("predict", tmp_path / "run", "--rows", "1")
    assert again["nodes"] == 60


def test_the_table_of_candidates_is_shown(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*own, "--intervention", "auto", "--seeds", "1"]) == 0
    said = capsys.readouterr()
    assert "--intervention auto chose cat-" in said.out and "trainings" in said.out
    assert "trying cat-i-zero, seed 0: validation" in said.err


def test_an_intervention_by_name(own: list[str], ask: Callable[..., Any]) -> None:
    told = ask(*own, "--intervention", "smooth", "--strategy", "explicit", "--seeds", "1")
    assert told["rows"][0]["model"] == "cat-e-smooth" and "choice" not in told


def test_several_interventions_by_name(own: list[str], ask: Callable[..., Any]) -> None:
    told = ask(*own, "--intervention", "smooth+mf", "--seeds", "1")
    assert told["rows"][0]["model"] == "cat-i-smooth+mf"


@pytest.fixture
def doubtful(tmp_path: Path) -> list[str]:
    """Two teams whose links are right, and columns that say nothing about them."""
    rng = np.random.default_rng(0)
    team = np.arange(80) % 2
    nodes = [f"{k},{'ab'[team[k]]},{','.join(f'{v:.3f}' for v in rng.random(6))}" for k in range(80)]
    ends = [(int(a), int(b)) for a, b in rng.integers(0, 80, (600, 2)) if a < b and team[a] == team[b]]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,team,p,q,r,s,t,u", *nodes]))
    (tmp_path / "links.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in ends)]))
    files = [
        "--edges",
        str(tmp_path / "links.csv"),
        "--nodes",
        str(tmp_path / "nodes.csv"),
        "--label",
        "team",
    ]
    training = ["--split", "fraction", "--epochs", "20", "--no-plots", "--out", str(tmp_path / "run")]
    return ["train", *files, *training]


def test_where_edges_are_in_doubt_validation_is_asked(
    doubtful: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*doubtful, "--seeds", "1"]) == 0
    said = capsys.readouterr()
    kept = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert kept["candidates"] == list(recommended.IF_DOUBTED)
    best = max(kept["trials"], key=lambda trial: (trial["val_accuracy"], -trial["val_loss"]))
    assert kept["model"] == best["model"]
    assert "no more alike than random pairs" in said.out and "trying spread-zero, seed 0" in said.err
    assert f"Validation nodes chose {kept['model']}:" in said.out
    assert f"{kept['model']} on " in said.out


@pytest.mark.parametrize("options", [["--model", "spread-trust"], ["--resplit"]])
def test_it_is_not_asked_where_the_network_is_named_or_each_seed_has_its_own_split(
    doubtful: list[str], options: list[str], ask: Callable[..., Any]
) -> None:
    told = ask(*doubtful, "--seeds", "1", *options)
    assert told["rows"][0]["model"] == "spread-trust" and "choice" not in told


def test_on_a_graph_without_doubt_it_is_asked_about_the_gate(
    ask: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "--epochs", "2", "--seeds", "1", "--no-plots", "--out"]
    told = ask(*arguments, tmp_path / "run")
    assert told["choice"]["candidates"] == list(recommended.OTHERWISE)
    assert told["rows"][0]["model"] == told["choice"]["model"]
    assert main([*arguments, str(tmp_path / "another")]) == 0
    assert "weight of its own depends on the graph. Validation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--intervention", "tea"), "--intervention tea: intervention 'tea' is not known; choose one of mf"),
        (("--intervention", "mf", "--model", "gat"), "give one of them"),
        (("--intervention", "auto", "--strategy", "implicit"), "tries both"),
        (("--intervention", "auto", "--resplit"), "--resplit"),
        (("--strategy", "explicit"), "goes with --intervention"),
    ],
)
def test_what_does_not_go_together(
    own: list[str], options: tuple[str, ...], said: str, refuse: Callable[..., str]
) -> None:
    assert said in refuse(*own, *options)
