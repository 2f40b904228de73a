"""`conjoint reproduce` and `conjoint report` as a user calls them."""

import json
from pathlib import Path

import pytest

from conjoint.cli import main
from conjoint.experiments.rows import append_row, read_rows
from fake_portrait import portrait
from fake_rows import rows_of


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Every run that `random-splits --quick` asks for is there already, so nothing is trained."""
    folder = tmp_path / "results"
    for row in rows_of("random-splits"):
        if row["dataset"] == "cora":
            append_row(folder, row)
    (folder / "report").mkdir()
    (folder / "report" / "cora.json").write_text(json.dumps(portrait()))
    return folder


def test_without_a_name_it_lists_what_there_is(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--results", str(results)]) == 0
    lines = {line.split()[0]: line.split()[1:3] for line in capsys.readouterr().out.splitlines()}
    assert lines["random-splits"] == ["720", "54"]
    assert lines["table1"] == ["720", "0"]


def test_a_complete_table_is_printed_at_once(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = read_rows(results)
    assert main(["reproduce", "random-splits", "--quick", "--results", str(results)]) == 0
    out = capsys.readouterr().out
    assert out.count("A second opinion") == 1  # no tables of graphs without a run
    assert "83.84 ± 0.61" in out and "78.17 ± 0.21" in out
    assert read_rows(results) == before


def test_json_is_one_document(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "random-splits", "--quick", "--results", str(results), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tables"][0]["headers"][:3] == ["model", "published", "measured"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "table9"], "conjoint: experiment 'table9' is not known; choose one of table1, "),
        (["reproduce", "table1", "--jobs", "0"], "conjoint: --jobs 0: give 1 or more"),
        (["reproduce", "arxiv", "--only", "cora"], "conjoint: --only cora: arxiv has no runs there"),
        (["report", "--results", "nowhere"], "conjoint: --results nowhere: no such folder"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    caught = capsys.readouterr()
    assert caught.err.startswith(said) and caught.err.count("\n") == 1 and caught.out == ""


def test_the_report_is_written(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.html"
    assert main(["report", "--results", str(results), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    text = out.read_text(encoding="utf-8")
    assert "Made from 54 training runs." in text and "81.2% right on the test papers" in text


def test_the_tables_are_written_as_markdown(results: Path, tmp_path: Path) -> None:
    words = ["report", "--results", str(results), "--markdown"]
    out = tmp_path / "pages"
    for _ in range(2):  # over its own pages it may write
        assert main([*words, str(out)]) == 0
    assert "| gat | 83.84 ± 0.61 | 78.17 ± 0.21 |" in (out / "random-splits.md").read_text(encoding="utf-8")
    assert (
        "random-splits.svg" in (out / "random-splits.md").read_text(encoding="utf-8")
        and (out / "random-splits.svg").exists()
    )
    (out / "index.md").write_text("# My own page\n")
    assert main([*words, str(out)]) == 2
    assert (out / "index.md").read_text() == "# My own page\n"


@pytest.mark.parametrize(
    "damaged",
    [
        "{}",
        "[]",
        json.dumps(portrait() | {"test_accuracy": None}),
        json.dumps(portrait() | {"points": [float("nan")]}),
    ],
)
def test_a_damaged_network_of_the_explorer_is_named(
    results: Path, damaged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "report" / "cora.json").write_text(damaged)
    assert main(["report", "--results", str(results), "--out", str(results / "r.html")]) == 2
    assert "cora.json: not a portrait of a network; delete it" in capsys.readouterr().err
