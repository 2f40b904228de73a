"""The journey from two CSV files to predictions, as a benchmark measures it, on a small graph."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import from_csv


def test_a_row_says_how_long_it_took_and_what_came_out_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "rows.jsonl"
    sizes = ["--nodes", "400", "--edges", "4000", "--features", "4"]
    where = ["--scratch", str(tmp_path), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["from_csv", *sizes, *where, "--", "--trials", "12", "--no-report"])
    from_csv.main()
    row = json.loads(out.read_text())
    assert (row["nodes"], row["edges"], row["more"]) == (400, 4000, ["--trials", "12", "--no-report"])
    assert row["seconds"] > 0 and row["peak_bytes"] > 2**26 and row["csv_bytes"] > 10_000
    assert sum(row["weights"].values()) == pytest.approx(1.0, abs=0.01)
    assert row["right"] > 0.5  # of sixteen classes
    shown = (tmp_path / "csv-400-4000" / "nodes.csv").read_text().splitlines()
    assert shown[0].split(",")[:2] == ["id", "label"]
    empty = sum(line.split(",")[1] == "" for line in shown[1:])
    assert 40 < empty < 130  # about a fifth
