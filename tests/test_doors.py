"""`conjoint train`, `conjoint.learn` and `CATClassifier`: the same graph, split and seed, the same bits."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file

from conjoint import CATClassifier, learn, load_learned, read_graph
from conjoint.cli import main
from conjoint.estimator.graphs import as_array
from topics import topic_graph

SEED = 3
CLASSES = np.array(["art", "law", "sea"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Edges, and nodes with word counts, a kind, a topic, and the part that each node has in the split."""
    folder = tmp_path_factory.mktemp("doors")
    data = topic_graph(90, words=20)
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    with open(edges, "w", newline="") as file:
        pairs = [(f"n{i}", f"n{j}") for i, j in data.edge_index.t().tolist() if i < j]
        csv.writer(file).writerows([("source", "target"), *pairs])
    x, y = data.x.to_dense().tolist(), CLASSES[data.y.numpy()]
    parts = np.array(["train", "val", "test"])[np.random.default_rng(0).choice(3, 90, p=[0.3, 0.3, 0.4])]
    with open(nodes, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "topic", "part", "kind", *(f"w{k}" for k in range(20))])
        writer.writerows([f"n{k}", y[k], parts[k], "ab"[k % 2], *x[k]] for k in range(90))
    return edges, nodes


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.parametrize(
    "chosen",
    [
        {"trials": 7},
        {"model": "cat-e-smooth"},
        {"intervention": "mf"},
        {"trials": 4, "class_weight": "balanced"},
        {"model": "gcn", "class_weight": {"sea": 3.0}},
    ],
    ids=["default", "model", "intervention", "balanced", "weights"],
)
def test_three_doors_one_training(
    files: tuple[Path, Path], tmp_path: Path, chosen: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    edges, nodes = files
    columns: dict[str, Any] = {"label": "topic", "split": "part"}
    graph = read_graph(edges, nodes, **columns)
    split = graph.split("given")

    columns["split_column"] = columns.pop("split")
    learned = learn(edges, nodes, seed=SEED, train={"epochs": 40}, **columns, **chosen)

    typed = {name: "sea=3" if isinstance(value, dict) else str(value) for name, value in chosen.items()}
    options = [word for name, value in typed.items() for word in (f"--{name.replace('_', '-')}", value)]
    given = ["--edges", str(edges), "--nodes", str(nodes), "--label", "topic", "--split-column", "part"]
    run = [
        "--seed",
        str(SEED),
        "--seeds",
        "1",
        "--epochs",
        "40",
        "--out",
        str(tmp_path / "run"),
        "--no-plots",
    ]
    assert main(["train", *given, *options, *run, "--quiet"]) == 0
    capsys.readouterr()

    y = np.full(graph.num_nodes, -1)  # what the test nodes are is not told
    for rows in (split.train, split.val):
        y[rows] = graph.y[rows]
    A = sp.csr_array((np.ones(graph.num_edges), graph.edge_index.numpy()), shape=(90, 90))
    if isinstance(chosen.get("class_weight"), dict):  # here classes are numbers
        chosen = chosen | {"class_weight": {graph.class_names.index("sea"): 3.0}}
    classifier = CATClassifier(random_state=SEED, epochs=40, **chosen)
    classifier.fit(as_array(graph.x), y, graph=A, validation=split.val.numpy())

    assert classifier.model_ == learned.setting.model
    assert classifier.choice_ == learned.choice is None
    assert without_seconds(classifier.history_) == without_seconds(learned.best.fitted.history)
    assert (classifier.portfolio_ is None) == ("trials" not in chosen)
    if classifier.portfolio_ is not None and learned.best.portfolio is not None:
        assert classifier.portfolio_.members == learned.best.portfolio.members
        assert classifier.portfolio_.estimate == learned.best.portfolio.estimate
    assert np.array_equal(classifier.label_distributions_, learned.best.probabilities)
    assert np.array_equal(classifier.embedding_, learned.embedding)
    weights = learned.best.fitted.model.state_dict()
    learned.save(tmp_path / "saved")
    kept = [load_file(tmp_path / folder / "weights.safetensors") for folder in ("run", "saved")]
    for other in (classifier.network_.state_dict(), *kept):
        assert weights.keys() == other.keys()
        assert all(torch.equal(value, other[name]) for name, value in weights.items())
    for folder in ("run", "saved"):  # each is read by the other's door
        again = load_learned(tmp_path / folder)
        assert again.predictions.equals(learned.predictions) and again.metrics == learned.metrics
        assert main(["predict", str(tmp_path / folder), "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)["rows"]
        assert [one["id"] for one in shown] == learned.predictions["id"].to_list()[:10]
        assert [one["predicted"] for one in shown] == learned.predictions["predicted"].to_list()[:10]
    table = pl.read_csv(tmp_path / "run" / "predictions.csv")
    assert table["id"].to_list() == graph.node_ids.tolist()
    assert np.array_equal(
        table["probability"].to_numpy().astype(np.float32), learned.best.probabilities.max(axis=1)
    )
    assert table["predicted"].to_list() == CLASSES[classifier.transduction_].tolist()


@pytest.mark.parametrize("chosen", [{"model": "gcn"}, {"intervention": "mf"}, {"model": "logistic"}])
def test_three_doors_where_every_label_serves(
    files: tuple[Path, Path], tmp_path: Path, chosen: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    edges, nodes = files
    learned = learn(edges, nodes, seed=SEED, label="topic", ignore=["part"], train={"epochs": 30}, **chosen)
    assert set(learned.predictions["part"]) == {"train"} and set(learned.metrics) == {"unseen"}

    options = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    own = ["--edges", str(edges), "--nodes", str(nodes), "--label", "topic", "--ignore", "part", *options]
    run = ["--seed", str(SEED), "--epochs", "30", "--out", str(tmp_path / "run"), "--no-plots", "--quiet"]
    assert main(["train", *own, *run]) == 0
    graph = learned.graph
    A = sp.csr_array((np.ones(graph.num_edges), graph.edge_index.numpy()), shape=(90, 90))
    classifier = CATClassifier(random_state=SEED, epochs=30, **chosen)
    classifier.fit(as_array(graph.x), graph.y.numpy(), graph=A)
    learned.save(tmp_path / "saved")

    assert np.array_equal(classifier.label_distributions_, learned.best.probabilities)
    assert classifier.estimate_ == learned.metrics["unseen"]
    assert classifier.history_ == learned.best.fitted.history
    weights = learned.best.fitted.model.state_dict()
    for folder in ("run", "saved"):
        kept = load_file(tmp_path / folder / "weights.safetensors")
        assert weights.keys() == kept.keys()
        assert all(torch.equal(value, kept[name]) for name, value in weights.items())
        again = load_learned(tmp_path / folder)
        assert again.predictions.equals(learned.predictions) and again.metrics == learned.metrics
        row = json.loads((tmp_path / folder / "result.json").read_text())
        assert row["estimate"] == pytest.approx(learned.metrics["unseen"])
        assert main(["report", str(tmp_path / folder)]) == 0
        page = (tmp_path / folder / "report.html").read_text()
        assert "all 90 labelled nodes train; a first training without 18 of them" in page
        assert "9 nodes that the judged trainings had not seen" in page
    capsys.readouterr()
