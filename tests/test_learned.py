"""`conjoint.learn`: tables in, a table of predictions out, metrics, reasons, a folder that all doors read."""

import json
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from conjoint import InputError, Learned, learn, load_learned
from conjoint.cli import main
from conjoint.data.convert import to_pyg
from conjoint.graph.splits import Split
from conjoint.training.metrics import accuracy, all_metrics
from topics import topic_graph

HOSTILE = "<script>alert(1)</script>"
GRAPH = topic_graph(90, words=20)
QUICK: dict[str, Any] = {"trials": 3, "train": {"epochs": 10}}
GCN: dict[str, Any] = {"model": "gcn", "train": {"epochs": 10}}


def tables(labels: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges and nodes of the topics; nodes after the first so many have no label."""
    pairs = [(f"n{i}", f"n{j}") for i, j in GRAPH.edge_index.t().tolist() if i < j]
    nodes = pd.DataFrame(GRAPH.x.to_dense().numpy(), columns=[f"w{k}" for k in range(20)])
    nodes.insert(0, "id", [f"n{k}" for k in range(90)])
    topic = np.array(["sky", HOSTILE, "sea"], dtype=object)[GRAPH.y.numpy()]
    topic[labels:] = None
    return pd.DataFrame(pairs, columns=["source", "target"]), nodes.assign(topic=topic)


@pytest.fixture(scope="module")
def learned() -> Learned:
    edges, nodes = tables()
    return learn(edges, nodes, label="topic", **QUICK)


def test_predictions_are_a_table_of_the_kind_that_came_in(learned: Learned, tmp_path: Path) -> None:
    edges, nodes = tables()
    table = learned.predictions
    assert isinstance(table, pd.DataFrame) and isinstance(learned.probabilities, pd.DataFrame)
    assert list(table.columns) == ["id", "part", "label", "predicted", "probability", "confidence"]
    assert table["id"].tolist() == nodes["id"].tolist()
    assert (table["label"][:60] == nodes["topic"][:60]).all() and (table["label"][60:] == "").all()
    shares = learned.probabilities
    assert list(shares.columns) == ["id", f"p({HOSTILE})", "p(sea)", "p(sky)"]
    ranked = np.sort(shares.drop(columns="id").to_numpy(), axis=1)
    assert np.array_equal(table["probability"], ranked[:, -1])
    assert np.allclose(table["confidence"], ranked[:, -1] - ranked[:, -2])
    other = learn(pl.from_pandas(edges), pl.from_pandas(nodes), label="topic", **QUICK)
    assert isinstance(other.predictions, pl.DataFrame)
    assert other.predictions.equals(pl.from_pandas(table))
    files = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    for file, frame in zip(files, (edges, nodes), strict=True):
        frame.to_csv(file, index=False)
    assert learn(*files, label="topic", **QUICK).predictions.equals(other.predictions)


def test_metrics_are_of_nodes_that_did_not_train(learned: Learned) -> None:
    portfolio = learned.best.portfolio
    assert portfolio is not None and portfolio.judged is not None
    nodes, shares = portfolio.judged
    assert set(learned.metrics) == {"unseen"}
    assert learned.metrics["unseen"]["accuracy"] == pytest.approx(
        accuracy(learned.graph.y.numpy()[nodes], shares), abs=1e-6
    )


def test_metrics_of_a_named_network_say_what_validation_and_test_nodes_do() -> None:
    found = learn(GRAPH, split={"name": "fraction"}, **GCN)
    split, shares = found.best.split, found.best.probabilities
    assert set(found.metrics) == {"validation", "test"}
    for kind, nodes in (("validation", split.val), ("test", split.reveal_test())):
        assert found.metrics[kind] == all_metrics(GRAPH.y[nodes].numpy(), shares[nodes.numpy()])


def test_labels_too_few_to_judge_by_give_no_metrics() -> None:
    edges, nodes = tables(labels=4)
    found = learn(edges, nodes, label="topic", **QUICK)
    assert found.metrics == {} and len(found.predictions) == 90
    assert "<table" in found._repr_html_()


def test_explain_is_what_the_command_tells(
    learned: Learned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = learned.explain("n3", most=8)
    assert why["node"] == "n3" and why["predicted"] == learned.predictions["predicted"][3]
    assert {one["id"] for one in why["neighbours"]} - {"n3"}
    learned.save(tmp_path / "run")
    assert main(["explain", str(tmp_path / "run"), "n3", "--candidates", "8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {key: told[key] for key in why} == json.loads(json.dumps(why))
    with pytest.raises(InputError, match="node 'x' is not in graph; its ids look like n0, n1, n2"):
        learned.explain("x")


def test_a_notebook_shows_hostile_names_and_does_not_run_them(learned: Learned) -> None:
    page = learned._repr_html_()
    assert "&lt;script&gt;" in page and "<script" not in page
    assert "unseen nodes" in page and "confidence" in page and "n9" in page and "n11" not in page


def test_a_saved_folder_serves_every_verb_wherever_it_is(
    learned: Learned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned.save(tmp_path / "first")
    run = tmp_path / "moved"
    shutil.move(tmp_path / "first", run)
    again = load_learned(run)
    assert again.predictions.equals(pl.from_pandas(learned.predictions))
    assert again.metrics == learned.metrics
    for verb in ("predict", "cluster", "report"):
        assert main([verb, str(run), "--quiet"]) == 0, verb
    assert main(["train", "--resume", str(run), "--quiet", "--no-plots", "--no-report"]) == 0
    capsys.readouterr()
    new = ["--new-nodes", str(run / "no.csv"), "--new-edges", str(run / "no.csv")]
    assert main(["predict", str(run), *new]) == 2
    assert "was not read from tables" in capsys.readouterr().err
    anew = ["--config", str(run / "config.toml"), "--out", str(tmp_path / "anew")]
    assert main(["train", *anew, "--quiet", "--no-plots", "--no-report"]) == 0
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (run, tmp_path / "anew")]
    assert weights[0] == weights[1]
    again.save(tmp_path / "copy")
    assert load_learned(tmp_path / "copy").predictions.equals(again.predictions)
    with pytest.raises(InputError, match="already there and never overwritten"):
        again.save(tmp_path / "copy")


@pytest.mark.parametrize("kind", ["pyg", "scipy", "networkx", "weighted"])
def test_any_graph_can_be_saved(kind: str, tmp_path: Path) -> None:
    source, target = GRAPH.edge_index.numpy()
    data: Any = to_pyg(GRAPH)
    given: dict[str, Any] = {}
    if kind == "networkx":
        data = nx.Graph(list(zip(source.tolist(), target.tolist(), strict=True)))
        nx.set_node_attributes(data, {k: f"t{k % 3}" for k in range(80)}, "topic")
        given = {"label": "topic"}
    elif kind != "pyg":
        weight = 1.0 + (source + target) % 3 if kind == "weighted" else np.ones(len(source))
        data = sp.csr_array((weight, (source, target)), shape=(90, 90))
        given = {"x": GRAPH.x.to_dense().numpy(), "y": GRAPH.y.numpy()}
    found = learn(data, **given, split={"name": "fraction"}, **GCN)
    found.save(tmp_path / "run")
    assert load_learned(tmp_path / "run").predictions.equals(found.predictions)


def test_a_split_of_nodes_can_be_saved_if_it_has_all_parts(tmp_path: Path) -> None:
    drawn = GRAPH.split("fraction", seed=4)
    found = learn(GRAPH, split=drawn, **GCN)
    found.save(tmp_path / "run")
    assert load_learned(tmp_path / "run").predictions.equals(found.predictions)
    without = learn(GRAPH, split=Split(drawn.train, drawn.val, "own"), **GCN)
    with pytest.raises(InputError, match="the split 'own' has no test nodes"):
        without.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_balanced_weights_find_a_rare_class() -> None:
    """One node of ten in a class that its features and neighbours tell only roughly."""
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 10 == 0).astype(int)
    x = (y[:, None] + 1.5 * rng.standard_normal((400, 4))).astype(np.float32)
    matrix = sp.csr_array((np.ones(800), rng.integers(0, 400, (2, 800))), shape=(400, 400))
    found = {}
    for given in (None, "balanced", {1: 9.0}):
        one = learn(matrix, x=x, y=y, class_weight=given, split={"name": "fraction"}, trials=3, seed=1)
        found[str(given)] = one.metrics["test"]["balanced-accuracy"]
        assert one.best.portfolio is not None
        metric = "balanced-accuracy" if given == "balanced" else "accuracy"
        assert one.best.portfolio.metric == metric
        assert given is None or "label propagation" not in [m["name"] for m in one.best.portfolio.members]
    assert found["None"] == pytest.approx(0.5, abs=0.1)
    assert found["balanced"] > found["None"] + 0.1 and found["{1: 9.0}"] > found["None"] + 0.1
    with pytest.raises(InputError, match="class_weight=2: no class is called so; there are 0, 1"):
        learn(matrix, x=x, y=y, class_weight={2: 1.0}, trials=1)


def test_progress_is_told_of_every_training_and_can_end_one() -> None:
    rows: list[dict[str, Any]] = []
    learn(GRAPH, trials=6, train={"epochs": 3}, progress=rows.append)
    assert {row["training"].partition(",")[0] for row in rows} >= {"perceptron"}

    def enough(row: dict[str, Any]) -> bool:
        return row["epoch"] == 4

    found = learn(GRAPH, split={"name": "fraction"}, progress=enough, **GCN)
    assert found.best.fitted.stopped == "callback" and len(found.best.fitted.history) == 4


def test_verbose_prints_trainings_or_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    learn(GRAPH, verbose=1, **QUICK)
    assert len(capsys.readouterr().out.splitlines()) == 4  # what is tried, then three trainings
    for level, lines in ((1, 1), (2, 10)):
        learn(GRAPH, split={"name": "fraction"}, verbose=level, **GCN)
        assert len(capsys.readouterr().out.splitlines()) == lines
