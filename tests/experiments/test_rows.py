"""A run's key: equal for equal runs. Its row survives whatever happens to the writer."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from conjoint.errors import InputError, StorageError
from conjoint.experiments.rows import (
    RunSpec,
    append_row,
    cut_torn_lines,
    read_rows,
    rows_file,
    select,
    spec_from,
)
from fake_runs import made_up, specs

SPEC = RunSpec(
    model="cat-i-mf",
    dataset="cora",
    split="per-class",
    seed=3,
    split_seed=3,
    source="embedded",
    model_settings={"hidden": 8, "dropout": 0.6},
    train_settings={"lr": 0.01, "penalty_weight": 1.0},
    variant={"noise": {"kind": "random-edges", "share": 0.5, "seed": 1}},
)


def test_the_key_does_not_depend_on_order_or_on_how_a_number_is_written() -> None:
    shuffled = replace(
        SPEC,
        model_settings={"dropout": 0.6, "hidden": 8},
        train_settings={"penalty_weight": 1, "lr": 0.01},
    )
    assert shuffled.key == SPEC.key


def test_the_key_is_fixed() -> None:
    """Rows of years ago must still be found: a change of the recipe is a mistake."""
    assert RunSpec(model="gat", dataset="cora", split="public", seed=0).key == "f69586b7eab11abc"


@pytest.mark.parametrize(
    "change",
    [
        {"split_settings": {"train_per_class": 5}},
        {"model": "cat-i-sc"},
        {"dataset": "citeseer"},
        {"source": "release"},
        {"features": "spectral:128"},
        {"split": "public"},
        {"split_seed": 4},
        {"seed": 4},
        {"rule": "gat"},
        {"model_settings": {"hidden": 16, "dropout": 0.6}},
        {"train_settings": {"lr": 0.02, "penalty_weight": 1.0}},
        {"variant": {}},
        {"variant": {"noise": {"kind": "random-edges", "share": 0.5, "seed": 2}}},
    ],
)
def test_whatever_changes_a_number_changes_the_key(change: dict[str, object]) -> None:
    assert replace(SPEC, **change).key != SPEC.key  # type: ignore[arg-type]


def test_a_row_gives_its_spec_back() -> None:
    row = json.loads(json.dumps({"key": SPEC.key, **asdict(SPEC), "test_accuracy": 0.8}))
    assert spec_from(row) == SPEC
    assert spec_from(row).key == SPEC.key


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
