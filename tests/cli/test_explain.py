"""Interventions computed from the graph, and several of them, from training to explanation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint.cli import main
from own_files import train_arguments, write_own_files

Ask = Callable[..., Any]
MODELS = ["cat-e-smooth", "cat-i-spectral", "cat-e-jaccard", "cat-i-nmf", "cat-e-smooth+spectral+mf"]


@pytest.mark.parametrize("model", MODELS)
def test_a_run_predicts_again_what_it_predicted(model: str, tmp_path: Path, ask: Ask) -> None:
    """Scores are not saved with the weights; they come back with the graph."""
    write_own_files(tmp_path)
    out = tmp_path / "run"
    options = ("--model", model, "--seeds", "1", "--epochs", "8", "--no-plots", "--out", str(out), "--quiet")
    assert main(train_arguments(tmp_path, *options)) == 0
    row: dict[str, Any] = json.loads((out / "result.json").read_text())
    found = ask("cluster", out)
    assert found["predicted"]["accuracy"] == row["all_accuracy"]
    explained = ask("explain", out, "Ada Lovelace")
    assert sum(row["conjoint"] for row in explained["neighbours"]) == pytest.approx(1.0, abs=1e-5)
    (attention,) = explained["attention"]
    assert [sum(layer["conjoint"]) for layer in attention["layers"]] == pytest.approx([1.0, 1.0], abs=1e-5)
    assert explained["on_part"] == pytest.approx(explained["probability"], abs=1e-5)
    weighed = explained["listens_to"]
    if "+" in model:
        assert [list(layer) for layer in weighed] == [["smooth", "spectral", "mf"]] * 2
        for layer, said in zip(weighed, row["intervention_weights"], strict=True):
            np.testing.assert_allclose(list(layer.values()), list(said.values()), atol=1e-3)
    elif model.startswith("cat-i"):
        assert all(sum(layer.values()) == pytest.approx(1.0, abs=1e-5) for layer in weighed)
    else:
        assert weighed == []


def test_the_weights_are_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_own_files(tmp_path)
    out = tmp_path / "run"
    options = ("--model", "cat-i-smooth+mf", "--seeds", "1", "--epochs", "3", "--no-plots", "--out", str(out))
    assert main(train_arguments(tmp_path, *options, "--quiet")) == 0
    capsys.readouterr()
    assert main(["explain", str(out), "Ada Lovelace"]) == 0
    told = capsys.readouterr().out
    assert "layer 1 listens to features 0." in told and ", smooth 0." in told and ", mf 0." in told
