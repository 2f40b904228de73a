"""Tables out: whole or not at all, and harmless in a spreadsheet."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conjoint.data import load_graph, write_graph, write_table
from conjoint.data.write import written_whole
from conjoint.errors import InputError


def test_text_that_a_spreadsheet_would_run_is_defused(tmp_path: Path) -> None:
    columns = {
        "id": ["=1+1", "+x", "-x", "@x", "ok", None],
        "score": [-1.5, 2.0, 0.0, 1.0, 3.0, 4.0],
        "=h": ["a"] * 6,
    }
    write_table(tmp_path / "t.csv", columns)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "id,score,'=h"
    assert [line.split(",")[0] for line in lines[1:]] == ["'=1+1", "'+x", "'-x", "'@x", "ok", ""]
    assert lines[1].split(",")[1] == "-1.5", "numbers stay numbers"
    write_table(tmp_path / "t.parquet", columns)
    assert pl.read_parquet(tmp_path / "t.parquet")["id"].to_list() == columns["id"]


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), written_whole(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["t.csv"]


def test_a_killed_writer_leaves_what_a_resumed_run_sweeps_away(tmp_path: Path) -> None:
    from conjoint.storage import remove_leftovers

    with written_whole(tmp_path / "t.csv") as part:
        part.write_text("half")
        remove_leftovers(tmp_path)
        assert not part.exists()
        part.write_text("whole")
    assert (tmp_path / "t.csv").read_text() == "whole"


def test_bad_targets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.csv, \.tsv or \.parquet"):
        write_table(tmp_path / "t.xlsx", {"a": [1]})
    with pytest.raises(InputError, match="does its folder exist"):
        write_table(tmp_path / "no" / "t.csv", {"a": [1]})


def test_ids_that_csv_cannot_hold_safely_are_refused(tmp_path: Path) -> None:
    data = load_graph("cora", source="embedded")
    data = data.changed(ids=np.array([f"={i}" for i in data.node_ids]))
    with pytest.raises(InputError, match=r"would run '=31336' as a formula; write \.parquet or \.npz"):
        write_graph(data, tmp_path / "e.csv", tmp_path / "n.csv")
    assert os.listdir(tmp_path) == []
    with pytest.raises(InputError, match="needs an edge table and a node table"):
        write_graph(data, tmp_path / "e.parquet")
