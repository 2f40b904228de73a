"""The tables of docs/performance.md are made from the files in results/benchmarks, and from nothing else."""

import json
from pathlib import Path

from benchmarks.table import layers, read_layers, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "performance.md").read_text()


def test_the_table_of_steps_is_that_of_all_runs() -> None:
    runs = [
        json.loads(path.read_text()) for path in sorted((ROOT / "results" / "benchmarks").glob("20*.json"))
    ]
    assert runs and table(*runs) in PAGE


def test_the_table_of_layers_is_that_of_its_rows() -> None:
    rows = read_layers(ROOT / "results" / "benchmarks" / "layers.jsonl")
    assert rows and f"<!-- layers -->\n{layers(rows)}\n<!-- /layers -->" in PAGE
