"""The examples that a newcomer copies first must run as they stand."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conjoint.data import load_graph, make_split
from conjoint.graph.sparse import to_scipy

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_the_two_commands_stand_alone() -> None:
    run, check = (block.strip().splitlines() for block in blocks("sh"))
    assert len(run) == len(check) == 1
    assert run[0].endswith("conjoint train") and check[0].endswith("scripts/check.py")


def test_the_example_for_pytorch_geometric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    code = blocks("python")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    names: dict[str, object] = {}
    torch.manual_seed(0)
    exec(code.replace("range(200)", "range(5)"), names)
    assert isinstance(names["alpha"], torch.Tensor) and names["alpha"].size(1) == 8


def test_the_example_for_the_whole_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    names: dict[str, Any] = {}
    exec(blocks("python")[1].replace("seed=0", 'seed=0, trials=3, train={"epochs": 2}'), names)
    assert len(names["learned"].predictions["predicted"]) == 2708


def test_the_example_for_scikit_learn() -> None:
    data = load_graph("cora", source="embedded")
    y = np.full(data.num_nodes, -1)
    train = make_split(data, "per-class", seed=0).train.numpy()
    y[train] = data.y.numpy()[train]
    code = blocks("python")[2].split("classifier.attention_")[0]
    for few, attends in (("trials=2", False), ("model='cat-i-mf', epochs=5", True)):
        names = {"X": to_scipy(data.x), "y": y, "A": data.edge_index.numpy()}
        exec(code.replace("random_state=0", f"random_state=0, {few}"), names)
        assert names["classifier"].predict_proba(names["X"]).shape == (2708, 7)
        assert not attends or set(names["classifier"].attention_.layer) == {0, 1}
