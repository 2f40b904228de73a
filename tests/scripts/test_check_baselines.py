"""The table in the docs is made from the committed rows, and no finished run is repeated."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_baselines", ROOT / "scripts" / "check_baselines.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "check_baselines", module)
    spec.loader.exec_module(module)
    return module


def test_the_table_in_the_docs_follows_from_the_rows(script: ModuleType) -> None:
    table = script.table(script.read_rows())
    assert table in script.PAGE.read_text()
    assert all(f"| `{name}` |" in table for name in script.CHECKS)


def test_every_baseline_was_measured_with_five_seeds_or_more(script: ModuleType) -> None:
    rows = script.read_rows()
    for name in script.CHECKS:
        seeds = [row["seed"] for row in rows if script.belongs(row, name)]
        assert len(seeds) == len(set(seeds)) >= 5, name
        assert not any(row["saw_test"] for row in rows if row["model"] == name)


def test_a_stopped_script_goes_on_where_it_was(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def measure(name: str, check: Any, data: Data, seed: int) -> dict[str, Any]:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(seed)
        return {"model": name, **script._identity(check), "seed": seed, "test_accuracy": 0.8, "seconds": 0.1}

    monkeypatch.setattr(script, "ROWS", tmp_path / "rows.jsonl")
    monkeypatch.setattr(
        script, "load", lambda *_, **__: Data(x=torch.ones(2, 2), edge_index=torch.ones(2, 1))
    )
    monkeypatch.setattr(script, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["check_baselines.py", "gcn", "--seeds", "3"])
    with pytest.raises(KeyboardInterrupt):
        script.main()
    calls.clear()
    script.main()
    assert calls == [2]
    script.main()
    assert calls == [2]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1, 2]


def test_rows_of_other_settings_do_not_count(script: ModuleType) -> None:
    row = {"model": "gcn", **script._identity(script.CHECKS["gcn"])}
    assert script.belongs(row, "gcn")
    assert not script.belongs({**row, "train_settings": {"lr": 1.0}}, "gcn")
