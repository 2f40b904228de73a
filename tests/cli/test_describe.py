"""conjoint describe, datasets and doctor: answers that need no trained run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint import kernels
from conjoint.cli import main
from conjoint.nn.names import MODELS

Ask = Callable[..., Any]

# Nodes, features, classes, further options; then the paper's Table 5 for CAT-I and CAT-E.
TABLE_5 = {
    "cora": ((2708, 1433, 7), (), 111285, 111267),
    "cite": ((3327, 3703, 6), (), 257505, 257487),
    "pubmed": ((19717, 500, 3), ("--hidden", 8, "--heads", 8), 91504, 91486),
    "coauthor-cs": ((18333, 6805, 15), ("--hidden", 32), 2021484, 2021466),
    "ogbn-arxiv": ((169343, 128, 40), ("--variant", "ogbn-arxiv"), 7158006, 7158002),
}


@pytest.mark.parametrize("kind", ["mf", "sc"])
@pytest.mark.parametrize("graph", TABLE_5)
def test_parameter_counts_equal_table_5(graph: str, kind: str, ask: Ask) -> None:
    (nodes, features, classes), more, implicit, explicit = TABLE_5[graph]
    for letter, expected in (("i", implicit), ("e", explicit)):
        sizes = ("--nodes", nodes, "--features", features, "--classes", classes)
        about = ask("describe", f"CAT-{letter.upper()}-{kind}", *sizes, *more)
        assert about["parameters"] == expected == sum(about["parameter_groups"].values())


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_described_with_its_memory(model: str, ask: Ask) -> None:
    about = ask("describe", model, *SIZES, "--edges", 5000)
    assert about["parameters"] > 0
    assert about["memory"]["training_bytes"] == sum(about["memory"]["parts"].values())
    assert about["memory"]["training_bytes"] > 20 * about["parameters"]


SIZES = ("--nodes", 1000, "--features", 50, "--classes", 4)


def test_text_and_the_list_of_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe"]) == 0
    assert all(name in capsys.readouterr().out for name in ("cat-e-sc",))
    assert main(["describe", "cat-i-mf", *map(str, SIZES)]) == 0
    assert "give --edges" in capsys.readouterr().out
    assert main(["describe", "cat-i-mf", *map(str, SIZES), "--edges", "5e3"]) == 0
    assert "training takes about" in capsys.readouterr().out


def test_bad_sizes_are_one_line(refuse: Callable[..., str]) -> None:
    assert "--classes is missing" in refuse("describe", "gat", "--nodes", 5, "--features", 3)
    assert "nodes: 0" in refuse("describe", "gat", "--nodes", 0, "--features", 3, "--classes", 2)
    assert "'2.5' is not a whole number" in refuse("describe", "gat", "--nodes", "2.5")
    assert "model 'got' is not known" in refuse("describe", "got", *SIZES)
    assert "heads=2: gcn has no such setting" in refuse("describe", "gcn", *SIZES, "--heads", 2)
    assert "edges" in refuse("describe", "gat", *SIZES, "--edges", -1)


def test_datasets_lists_the_five_graphs(ask: Ask, tmp_path: Path, refuse: Callable[..., str]) -> None:
    rows = ask("datasets")["datasets"]
    assert {row["name"] for row in rows} == {"cora", "citeseer", "pubmed", "coauthor-cs", "ogbn-arxiv"}
    assert [row["where"] for row in rows if row["source"] == "embedded"] == ["inside the package"]
    assert "is not a folder" in refuse("datasets", "--data", tmp_path / "nothing")


def test_doctor_tells_about_the_kernels(ask: Ask) -> None:
    facts = ask("doctor")
    assert facts["kernels"]["reason"] and isinstance(facts["kernels"]["active"], bool)
    assert facts["packages"]["torch"].startswith("2.")
    with kernels.disabled():
        assert ask("doctor")["kernels"]["active"] is False
