"""conjoint train --intervention: by name, or chosen by validation and written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from conjoint.cli.train import read_trials
from conjoint.selection import choose
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


def test_a_comparison_that_was_stopped_goes_on_with_the_same_command(
    own: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, trained = choose.train_candidate, list[str]()

    def stopped(name: str, *rest: Any) -> Any:
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(name)
        return real(name, *rest)

    command = [*own, "--intervention", "auto", "--seeds", "1"]
    monkeypatch.setattr(choose, "train_candidate", stopped)
    assert main(command) == 130
    assert "3 finished trainings kept; the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(choose, "train_candidate", real)
    assert main(command) == 0
    assert "3 finished trainings found in" in capsys.readouterr().err
    assert not list(tmp_path.glob(".trials-*"))
    whole = [str(tmp_path / "whole") if part == str(tmp_path / "run") else part for part in command]
    assert main(whole) == 0
    for file in ("choice.json", "predictions.csv"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_trials_that_are_damaged_are_done_again(tmp_path: Path) -> None:
    for content in (b"{", b"[1]", b'[{"model": 1}]', b"\xff"):
        (tmp_path / "trials.json").write_bytes(content)
        assert read_trials(tmp_path / "trials.json") == []
