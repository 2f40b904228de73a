import json
import tomllib
from pathlib import Path

import pytest

from conjoint.cli import main

QUICK = ["--trials", "2", "--trial-seeds", "1", "--trial-epochs", "3", "--minutes", "5"]


def test_the_best_can_be_trained_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *QUICK, "--models", "gat", "cat-i-mf"]) == 0
    said = capsys.readouterr().out
    assert "2 trials" in said and "conjoint train --config tuning/cora/best.toml" in said
    best = tomllib.loads(Path("tuning/cora/best.toml").read_text())
    assert best["model"]["name"] in ("gat", "cat-i-mf")
    assert (
        main(["train", "--config", "tuning/cora/best.toml", "--epochs", "2", "--seeds", "1", "--no-plots"])
        == 0
    )
    capsys.readouterr()  # again with more trials: the earlier ones count
    assert main(["tune", *QUICK, "--trials", "3", "--models", "gat", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 3
    assert len(Path("tuning/cora/trials.jsonl").read_text().splitlines()) == 3


def test_a_search_is_about_one_graph_and_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *QUICK, "--trials", "1", "--models", "gat"]) == 0
    assert main(["tune", *QUICK, "--split-seed", "1"]) == 2
    assert "another graph or split" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    assert main(["tune", *QUICK, "--out", "mine"]) == 2
    assert "not a search" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong, says",
    [
        (["--minutes", "0"], "--minutes 0.0"),
        (["--models", "gpt"], "--models gpt"),
        (["--trial-seeds", "0"], "--trial-seeds 0"),
    ],
)
def test_what_cannot_be_is_said(
    wrong: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *wrong]) == 2
    assert says in capsys.readouterr().err
