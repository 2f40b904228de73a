"""Rows survive whatever happens to their writer."""

import json
from pathlib import Path

import pytest

from conjoint.errors import InputError, StorageError
from conjoint.experiments.rows import append_row, cut_torn_lines, read_rows, rows_file, select
from fake_runs import made_up, specs


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    rows = [made_up(spec) for spec in specs(3)]
    for row in rows:
        append_row(tmp_path, row)
    assert read_rows(tmp_path) == json.loads(json.dumps(rows))
    assert rows_file(tmp_path, "cora").read_text().count("\n") == 3


def test_a_torn_last_line_is_ignored_then_cut_off(tmp_path: Path) -> None:
    rows = [made_up(spec) for spec in specs(2)]
    append_row(tmp_path, rows[0])
    with open(rows_file(tmp_path, "cora"), "a") as file:
        file.write(json.dumps(rows[1])[:50])
    assert [row["key"] for row in read_rows(tmp_path)] == [rows[0]["key"]]
    cut_torn_lines(tmp_path)
    append_row(tmp_path, rows[1])
    assert [row["key"] for row in read_rows(tmp_path)] == [row["key"] for row in rows]


def test_the_first_row_of_a_key_counts(tmp_path: Path) -> None:
    [spec] = specs(1)
    append_row(tmp_path, made_up(spec, 0.8))
    append_row(tmp_path, made_up(spec, 0.9))
    assert [row["test_accuracy"] for row in read_rows(tmp_path)] == [0.8]


@pytest.mark.parametrize("line", ["{}", "[]", "not json", '{"key": "k"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    rows_file(tmp_path, "cora").write_text(line + "\n")
    with pytest.raises(InputError, match=r"cora\.jsonl line 1: not a result row; delete the line"):
        read_rows(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 5},
        {"model": ["gat"]},
        {"train_settings": None},
        {"test_accuracy": "high"},
        {"all_accuracy": float("nan")},
        {"epochs": 0},
        {"release": {"test_accuracy": []}},
        {"made_with": []},
        {"failed": 1},
    ],
)
def test_a_changed_row_is_not_taken_for_a_good_one(tmp_path: Path, change: dict[str, object]) -> None:
    [spec] = specs(1)
    rows_file(tmp_path, "cora").write_text(json.dumps(made_up(spec) | change) + "\n")
    with pytest.raises(InputError, match="line 1: not a result row"):
        read_rows(tmp_path)


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    [spec] = specs(1)
    with pytest.raises(ValueError):
        append_row(tmp_path, made_up(spec, float("nan")))
    assert read_rows(tmp_path) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        append_row(tmp_path / "taken", made_up(specs(1)[0]))


def test_select_keeps_the_rows_of_the_named_runs() -> None:
    some = specs(3)
    assert select([made_up(spec) for spec in some], [some[1].key, "absent"]) == [made_up(some[1])]
