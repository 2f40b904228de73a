"""Run folders, a graph folder and a search that an earlier version wrote are opened, used and gone on with.

`record.py` made them. Answers are compared as they were given then; weights bit for bit.
"""

import csv
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from conjoint.data import read_graph
from golden.bits import digest_of_run, skip_unless_made_here
from golden.commands import EXPECTED, KEPT, RUNS, SPLIT, TUNING, answer_name, tables
from golden.graphs import fingerprint_of

RECORDED = json.loads((EXPECTED / "runs.json").read_text())
FINISHED = [name for name, kept in KEPT.items() if kept.stop is None]
STOPPED = [name for name in KEPT if name not in FINISHED]
# Their features are eigenvectors, computed again when the run is opened: with another last bit it would be
# another graph.
COMPUTED = ("gat-klap", "spectral")
CHOSEN_THEN = ("default", "default-paused")  # between two rivals; the command now names the one that won
Command = Callable[..., str]


@pytest.fixture
def conjoint(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command that must succeed; what it printed."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        status = main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert status == 0, err
        return out

    return run


def copy_of(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(RUNS / name, folder / name))


def check_answer(name: str, verb: str, run: Path, conjoint: Command) -> None:
    """What the verb says of this run is what it said when the run was made."""
    expected, answer = EXPECTED / answer_name(name, verb), run.parent / answer_name(name, verb)
    printed = conjoint(*KEPT[name].use(verb, run, answer))
    if expected.suffix == ".json":
        then = json.loads(expected.read_text())
        said = json.loads(printed)
        now = {key: value for key, value in said.items() if key in then}
        if verb == "explain":
            now["neighbours"] = attention_as_it_was_told(said, then["neighbours"])
        assert_same(now, then)
    else:
        assert_same(cells(answer), cells(expected))


def attention_as_it_was_told(said: dict[str, Any], then: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A column for each part and layer, in the order of that time; of equal parts one is told now."""
    place = {row["id"]: k for k, row in enumerate(said["neighbours"])}
    assert len(place) == len(then)
    rows = []
    for row in then:
        k = place[row["id"]]
        made = {"id": row["id"], "class": said["neighbours"][k]["class"] or ""}
        for column in (name for name in row if name not in made):
            part, layer = column.split()
            found = said["attention"][0]["layers"][int(layer) - 1]
            made[column] = found.get(part, found["conjoint"])[k]
        rows.append(made)
    return rows


def cells(path: Path) -> list[list[Any]]:
    def cell(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text

    with open(path, newline="") as file:
        return [list(map(cell, row)) for row in csv.reader(file)]


def assert_same(now: Any, then: Any) -> None:
    """Equal, and numbers within the last digits of what a float32 holds."""
    if isinstance(then, dict):
        assert now.keys() == then.keys()
        for key in then:
            assert_same(now[key], then[key])
    elif isinstance(then, list):
        assert len(now) == len(then)
        for one, other in zip(now, then, strict=True):
            assert_same(one, other)
    else:
        assert now == (pytest.approx(then, rel=1e-5, abs=1e-6) if isinstance(then, float) else then)


def check_weights(name: str, run: Path) -> None:
    found = {part: digest_of_run(run / part) for part in RECORDED["runs"][name]["weights"]}
    assert found == RECORDED["runs"][name]["weights"]


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_answers_as_it_did(name: str, tmp_path: Path, conjoint: Command) -> None:
    if name in COMPUTED:
        skip_unless_made_here(RECORDED["made_with"])
    run = copy_of(name, tmp_path)
    for verb in ("predict", *KEPT[name].also):
        check_answer(name, verb, run, conjoint)


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_run_goes_on_to_the_same_weights(name: str, tmp_path: Path, conjoint: Command) -> None:
    skip_unless_made_here(RECORDED["made_with"])
    run = copy_of(name, tmp_path)
    conjoint("train", "--resume", run, *KEPT[name].place(), "--no-plots", "--quiet")
    check_weights(name, run)
    check_answer(name, "predict", run, conjoint)


@pytest.mark.parametrize("name", KEPT)
def test_the_same_command_trains_the_same_weights(name: str, tmp_path: Path, conjoint: Command) -> None:
    skip_unless_made_here(RECORDED["made_with"])
    run = tmp_path / "run"
    conjoint(*KEPT[name].train(), "--out", run)
    check_weights(name, run)
    check_answer(name, "predict", run, conjoint)
    for path in RUNS.glob(f"{name}/**/*.json*"):  # choice, result and the row of every epoch
        if path.name == "choice.json" and name in CHOSEN_THEN:
            continue
        kept, made = read_rows(path), read_rows(run / path.relative_to(RUNS / name))
        if path.name != "model.json":  # which tells versions, too
            for now, then in zip(made, kept, strict=False):  # a row may tell more than it did
                assert {key: now[key] for key in then} == then
            assert len(made) >= len(kept)


def read_rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    rows = map(json.loads, text.splitlines()) if path.suffix == ".jsonl" else [json.loads(text)]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_the_settings_of_a_run_train_it_again(tmp_path: Path, conjoint: Command) -> None:
    skip_unless_made_here(RECORDED["made_with"])
    config, run = RUNS / "cat-i-mf" / "config.toml", tmp_path / "run"
    conjoint("train", "--config", config, *tables(RUNS), *SPLIT, "--out", run, "--no-plots", "--quiet")
    check_weights("cat-i-mf", run)


def test_the_tables_of_the_runs_are_read_as_the_same_graph() -> None:
    options: dict[str, Any] = {
        "label": "team",
        "text": "bio",
        "ignore": ["born", "use", "year"],
        "reading": 1,
    }
    data = read_graph(RUNS / "edges.csv", RUNS / "nodes.csv", **options)
    assert fingerprint_of(data) == RECORDED["runs"]["default"]["fingerprint"]


def test_an_old_search_is_gone_on_with(tmp_path: Path, conjoint: Command) -> None:
    folder = copy_of("tuning", tmp_path)
    earlier, best = (folder / "trials.jsonl").read_text(), tomllib.loads((folder / "best.toml").read_text())
    command = ("tune", *tables(RUNS), *TUNING, "--out", folder, "--quiet")
    conjoint(*command, "--trials", "4")  # which is what there are
    assert (folder / "trials.jsonl").read_text() == earlier
    again = tomllib.loads((folder / "best.toml").read_text())
    assert best["model"].items() <= again["model"].items() and best["train"].items() <= again["train"].items()
    conjoint(*command, "--trials", "5")
    later = (folder / "trials.jsonl").read_text()
    assert later.startswith(earlier) and later.count("\n") == 5


def test_what_an_old_search_found_best_is_trained(tmp_path: Path, conjoint: Command) -> None:
    best, run = RUNS / "tuning" / "best.toml", tmp_path / "run"
    options = (*tables(RUNS), "--epochs", "2", "--seed", "0", "--out", run, "--no-plots", "--json")
    (row,) = json.loads(conjoint("train", "--config", best, *options))["rows"]
    assert row["model"] == tomllib.loads(best.read_text())["model"]["name"]
