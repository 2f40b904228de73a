"""conjoint ingest, and training and prediction in batches, from the command line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conjoint.cli import main
from conjoint.training.memory import Way
from golden.commands import RUNS
from own_files import write_own_files

Ask = Callable[..., Any]
SMALL = ("--hidden", "4", "--heads", "2", "--epochs", "4", "--no-plots")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("stored")
    edges, nodes = write_own_files(here)
    tables = ("--edges", str(edges), "--nodes", str(nodes), "--label", "topic")
    assert main(["ingest", *tables, "--out", str(here / "graph"), "--quiet"]) == 0
    batch = ("--batch", "neighbours", "--batch-size", "8", "--fanout", "3,2")
    assert main(["train", str(here / "graph"), *SMALL, *batch, "--out", str(here / "run"), "--quiet"]) == 0
    return here


def test_ingest_says_what_it_made(tmp_path: Path, ask: Ask, refuse: Callable[..., str]) -> None:
    edges, nodes = write_own_files(tmp_path)
    tables = ("ingest", "--edges", edges, "--nodes", nodes, "--label", "topic", "--out", tmp_path / "g")
    made = ask(*tables)
    assert (made["nodes"], made["edges"], made["features"]) == (60, 40, 12)
    assert "never overwritten" in refuse(*tables)


def test_a_folder_and_the_tables_train_on_the_same_graph(tmp_path: Path) -> None:
    """Words, categories, weights, times and parts, from gzipped tables."""
    for name in ("edges", "nodes"):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress((RUNS / f"{name}.csv").read_bytes()))
    tables = ["--edges", str(tmp_path / "edges.csv.gz"), "--nodes", str(tmp_path / "nodes.csv.gz")]
    tables += ["--label", "team", "--text", "bio", "--categorical", "unit", "--ignore", "born"]
    tables += ["--weight", "strength", "--time", "year", "--split-column", "use"]
    assert main(["ingest", *tables, "--out", str(tmp_path / "g"), "--quiet"]) == 0
    network = ("--split", "given", "--model", "gcn", *SMALL[:2], "--epochs", "4", "--seed", "0", "--no-plots")
    found = []
    for graph, run in ((tables, tmp_path / "tables"), ([str(tmp_path / "g")], tmp_path / "folder")):
        assert main(["train", *graph, *network, "--out", str(run), "--quiet"]) == 0
        about = json.loads((run / "model.json").read_text())
        found.append((about["data_fingerprint"], (run / "weights.safetensors").read_bytes()))
    assert found[0] == found[1]


def test_a_run_on_a_folder_is_complete(folder: Path) -> None:
    row = json.loads((folder / "run" / "result.json").read_text())
    assert row["batch"]["kind"] == "neighbours" and row["batch"]["fanout"] == [3, 2] and row["ranks"] == 1
    table = pl.read_csv(folder / "run" / "predictions.csv")
    assert table.height == 60 and table.columns == ["id", "part", "label", "predicted", "probability"]
    assert table["id"][1] == "'=HYPERLINK(1)"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_predictions_are_those_of_the_full_graph(folder: Path, tmp_path: Path, ask: Ask, kind: str) -> None:
    """The same weights through `embed`'s kind of loading, and in pieces."""
    from conjoint.cli.plan import Plan, graph_of
    from conjoint.selection.setting import Setting
    from conjoint.training import load_run, predict_proba

    said = ask("predict", folder / "run", "--out", tmp_path / f"p.{kind}")
    assert said["nodes"] == 60 and len(said["rows"]) == 10
    if kind == "parquet":
        table = pl.read_parquet(tmp_path / "p.parquet")
    else:
        table = pl.read_csv(tmp_path / f"p.{kind}", separator="\t" if kind == "tsv" else ",")
    model, run = load_run(folder / "run")
    plan = Plan(Setting("cat-i-mf"), {"folder": str(folder / "graph")})
    expected = predict_proba(model, graph_of(plan), run.config).numpy()
    assert table["probability"].to_numpy() == pytest.approx(expected.max(axis=1), abs=1e-5)
    assert table.width == 5 + expected.shape[1]


def test_only_unlabelled_nodes(folder: Path, ask: Ask) -> None:
    said = ask("predict", folder / "run", "--unlabelled", "--rows", "2")
    assert said["nodes"] == 6 and all(row["label"] == "" for row in said["rows"])


def test_a_run_goes_on_with_its_own_batches(folder: Path, tmp_path: Path, ask: Ask) -> None:
    """A finished one is evaluated again."""
    before = json.loads((folder / "run" / "result.json").read_text())
    again = ask("train", "--resume", folder / "run", "--no-plots")["rows"][0]
    assert again["batch"] == before["batch"] and again["estimate"] == before["estimate"]
    made = ask("train", "--config", folder / "run" / "config.toml", "--out", tmp_path / "r", "--no-plots")
    assert made["rows"][0]["val_loss"] == before["val_loss"]


def test_clusters_of_a_graph_in_memory_with_two_seeds(tmp_path: Path, ask: Ask) -> None:
    edges, nodes = write_own_files(tmp_path)
    tables = ("--edges", edges, "--nodes", nodes, "--label", "topic")
    batch = ("--batch", "clusters", "--batch-size", "20", "--joined", "3", "--batches-per-step", "2")
    made = ask("train", *tables, *SMALL, *batch, "--seeds", "2", "--out", tmp_path / "r")
    assert [row["seed"] for row in made["rows"]] == [0, 1]
    assert ask("predict", tmp_path / "r")["run"] in (str(tmp_path / "r" / f"seed-{k}") for k in (0, 1))


def test_the_choice_is_told_and_follows_memory(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["train", str(folder / "graph"), *SMALL]
    assert main([*arguments, "--out", str(tmp_path / "roomy")]) == 0
    assert "training on the " in capsys.readouterr().err
    assert "batch" not in json.loads((tmp_path / "roomy" / "result.json").read_text())
    monkeypatch.setattr("conjoint.training.memory.available_memory", lambda: 10_000)
    assert main([*arguments, "--out", str(tmp_path / "tight")]) == 0
    assert "training in batches of neighbours: about" in capsys.readouterr().err
    assert json.loads((tmp_path / "tight" / "result.json").read_text())["batch"]["kind"] == "neighbours"
    assert main([*arguments, "--batch", "full", "--out", str(tmp_path / "forced")]) == 0
    assert "training" not in capsys.readouterr().err
    assert (
        str(Way("full", 1, 2**31, "it fits"))
        == "training on the full graph: about 0 MiB of 2.0 GiB (it fits)"
    )


def test_what_is_refused(folder: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    def refused(*arguments: object) -> str:
        said = refuse("train", folder / "graph", "--quiet", "--out", tmp_path / "r", *arguments)
        assert not (tmp_path / "r").exists()
        return said

    assert "needs the whole graph" in refused("--model", "gcn", "--batch", "clusters")
    assert "--fanout a" in refused("--batch", "neighbours", "--fanout", "a")
    assert "joined=1" in refused("--batch", "clusters", "--joined", "1")
    assert "joins an embedding" in refused("--model", "gat-klap", "--batch", "neighbours")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    assert "format None" in refuse("train", broken, "--out", tmp_path / "r")


def test_describe_knows_batches(ask: Ask) -> None:
    sizes = ("--nodes", "5e6", "--features", "128", "--classes", "16", "--edges", "5e7")
    memory = ask("describe", "cat-i-mf", *sizes)["memory"]
    assert memory["training_bytes"] > 10 * max(memory["batches"].values())
    assert ask("describe", "gcn", *sizes)["memory"]["batches"] == {}


def test_where_an_ensemble_does_not_fit_attention_takes_its_place(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, nodes = write_own_files(tmp_path)
    tables = ("--edges", edges, "--nodes", nodes, "--label", "topic", "--epochs", "2", "--no-plots")
    fits = ask("train", *tables, "--trials", "2", "--out", tmp_path / "fits")
    assert fits["rows"][0]["model"] == "ensemble"
    for module in ("training.memory", "selection.learner"):
        monkeypatch.setattr(f"conjoint.{module}.available_memory", lambda: 10_000)
    row = ask("train", *tables, "--out", tmp_path / "not")["rows"][0]
    assert row["model"] == "cat-i-mf" and row["batch"]["kind"] in ("clusters", "neighbours")
