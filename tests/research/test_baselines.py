"""The table in the docs is made from the committed rows, and no finished run is repeated."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conjoint.graph.graph import Graph
from research import baselines


def test_the_table_in_the_docs_follows_from_the_rows() -> None:
    table = baselines.table(baselines.read_rows())
    assert table in baselines.PAGE.read_text()
    assert all(f"| `{name}` |" in table for name in baselines.CHECKS)


def test_every_baseline_was_measured_with_five_seeds_or_more() -> None:
    rows = baselines.read_rows()
    for name in baselines.CHECKS:
        seeds = [row["seed"] for row in rows if baselines.belongs(row, name)]
        assert len(seeds) == len(set(seeds)) >= 5, name
        assert not any(row["saw_test"] for row in rows if row["model"] == name)


def test_a_stopped_script_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def measure(name: str, check: Any, data: Graph, seed: int) -> dict[str, Any]:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(seed)
        return {
            "model": name,
            **baselines._identity(check),
            "seed": seed,
            "test_accuracy": 0.8,
            "seconds": 0.1,
        }

    monkeypatch.setattr(baselines, "ROWS", tmp_path / "rows.jsonl")
    graph = Graph(torch.ones(2, 2), torch.zeros(2).long(), torch.tensor([[0], [1]]))
    monkeypatch.setattr(baselines, "load_graph", lambda *_, **__: graph)
    monkeypatch.setattr(baselines, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["baselines", "gcn", "--seeds", "3"])
    with pytest.raises(KeyboardInterrupt):
        baselines.main()
    calls.clear()
    baselines.main()
    assert calls == [2]
    baselines.main()
    assert calls == [2]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1, 2]


def test_rows_of_other_settings_do_not_count() -> None:
    row = {"model": "gcn", **baselines._identity(baselines.CHECKS["gcn"])}
    assert baselines.belongs(row, "gcn")
    assert not baselines.belongs({**row, "train_settings": {"lr": 1.0}}, "gcn")
