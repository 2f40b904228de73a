"""Labels of test nodes decide nothing: with others in their place every way in gives the same bits."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint import CATClassifier, learn
from conjoint.cli import main
from conjoint.experiments import execute as executing
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split
from conjoint.nn.model import NodeModel
from conjoint.selection import choose_intervention, diagnose
from conjoint.selection.choose import network
from conjoint.selection.tune import Budget, tune
from conjoint.training import BatchConfig, TrainConfig, fit
from fake_rows import cora
from research.recommended import choose_recommended
from small_training import small_data, small_split

QUICK = TrainConfig(epochs=4, patience=0, lr=0.05, seed=1)
SEES = replace(QUICK, rule="release", see_test=True)
TOLD = {"epochs": 4, "patience": 0}


def scrambled(data: Graph, split: Split) -> Graph:
    y, test = data.y.clone(), split.reveal_test()
    y[test] = (y[test] + 1) % (int(y.max()) + 1)
    return replace(data, y=y)


def bits(model: NodeModel) -> list[bytes]:
    return [part.numpy().tobytes() for part in model.state_dict().values()]


def by_fit(data: Graph, folder: Path) -> Any:
    found = []
    for batches in (None, BatchConfig(kind="clusters", size=20)):
        model = network("cat-i-mf", data, 1, {})
        fit(model, data, small_split(), QUICK, batches=batches)
        found.append(bits(model))
    return found


def by_learn(data: Graph, folder: Path) -> Any:
    ways: list[dict[str, Any]] = [
        {"trials": 4},
        {"model": "cat-e-sc"},
        {"model": "spread-trust"},
        {"intervention": "auto"},
    ]
    found = [learn(data, split=small_split(), seed=1, train=TOLD, **way) for way in ways]
    seeing = learn(data, split=small_split(), trials=3, train={**TOLD, "rule": "release", "see_test": True})
    return [one.best.probabilities.tolist() for one in (*found, seeing)]


def by_choosing(data: Graph, folder: Path) -> Any:
    chosen = [
        choose(data, small_split(), config)
        for choose in (choose_intervention, choose_recommended)
        for config in (QUICK, SEES)
    ]
    return repr([(one.model, one.trials) for one in chosen])


def by_tuning(data: Graph, folder: Path) -> Any:
    pytest.importorskip("optuna")
    budget = Budget(minutes=5.0, trials=2, seeds=1, epochs=4, patience=0)
    found = []
    for name, config in (("usual", QUICK), ("release", SEES)):
        (folder / name).mkdir()
        tried = tune(data, small_split(), folder / name, budget=budget, base=config)
        found.append([(one.point, one.val_accuracy, one.val_loss) for one in tried])
    return found


def by_diagnosis(data: Graph, folder: Path) -> Any:
    return diagnose(data, small_split().train)


def by_estimator(data: Graph, folder: Path) -> Any:
    """Its y has no labels of test nodes; they come with `score`, which must leave it as it was."""
    split, x, edges = small_split(), data.x.numpy(), data.edge_index.numpy()
    y = np.full(data.num_nodes, -1)
    for part in (split.train, split.val):
        y[part] = data.y[part]
    found = []
    for options in ({"trials": 3}, {"model": "cat-i-mf", "epochs": 4, "patience": 0}):
        made = CATClassifier(random_state=1, **options).fit(x, y, graph=edges, validation=split.val.numpy())
        made.score(x, data.y.numpy(), graph=edges)
        found.append([made.predict_proba(x, graph=edges).tobytes(), made.label_distributions_.tobytes()])
    return found


def by_reproducing(data: Graph, folder: Path) -> Any:
    """A row of the paper's tables, but for what it tells about test nodes and about time."""
    told, split = [], small_split()
    data = replace(data, published={"given": (split.train, split.val, split.reveal_test())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executing, "_graph", lambda *named: data)
        for model in ("cat-i-mf", "gat", "gcn"):
            row = executing.execute(replace(cora(model), split="given", split_settings={}))
            assert "failed" not in row and 0 < row["test_accuracy"] < 1
            told.append(
                [row[name] for name in ("best_epoch", "epochs", "val_loss", "val_accuracy", "train_accuracy")]
            )
    return told


def by_command(data: Graph, folder: Path) -> Any:
    """`conjoint train` on files with a column that says which nodes are for testing."""
    split = small_split()
    parts = dict.fromkeys(split.train.tolist(), "train") | dict.fromkeys(split.val.tolist(), "val")
    with open(folder / "edges.csv", "w", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *data.edge_index.t().tolist()])
    with open(folder / "nodes.csv", "w", newline="") as file:
        rows = zip(data.y.tolist(), data.x.tolist(), strict=True)
        writer = csv.writer(file)
        writer.writerow(["id", "topic", "part", *(f"f{k}" for k in range(data.num_features))])
        writer.writerows([k, "abc"[label], parts.get(k, "test"), *row] for k, (label, row) in enumerate(rows))
    files = ["--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv", "--label", "topic"]
    more = ["--split-column", "part", "--epochs", "4", "--no-report", "--quiet"]
    for name, way in (("one", ["--model", "cat-i-mf"]), ("many", ["--trials", "3"])):
        assert main([*map(str, ["train", *files, *more, *way, "--out", folder / name])]) == 0
    weights = sorted(folder.rglob("weights.safetensors"))
    assert len(weights) >= 2
    return [(path.relative_to(folder), path.read_bytes()) for path in weights]


@pytest.mark.parametrize(
    "way",
    [by_fit, by_learn, by_choosing, by_tuning, by_diagnosis, by_estimator, by_reproducing, by_command],
)
def test_test_labels_reach_nothing(way: Callable[[Graph, Path], Any], tmp_path: Path) -> None:
    found = []
    for name, data in (("one", small_data()), ("two", scrambled(small_data(), small_split()))):
        (tmp_path / name).mkdir()
        found.append(way(data, tmp_path / name))
    assert found[0] == found[1]


def with_another_training_label() -> Graph:
    data = small_data()
    y = data.y.clone()
    y[small_split().train[0]] = (y[small_split().train[0]] + 1) % 3
    return replace(data, y=y)


@pytest.mark.parametrize("way", [by_fit, by_learn, by_estimator, by_reproducing, by_command])
def test_training_labels_do(way: Callable[[Graph, Path], Any], tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    found = []
    for name, data in (("one", small_data()), ("two", with_another_training_label())):
        (tmp_path / name).mkdir()
        found.append(way(data, tmp_path / name))
    assert found[0] != found[1]


def test_the_release_itself_does_learn_from_them() -> None:
    kept = []
    for data in (small_data(), scrambled(small_data(), small_split())):
        config = replace(SEES, epochs=30)
        kept.append(fit(network("gat", data, 1, {}), data, small_split(), config).best_epoch)
    assert kept[0] != kept[1]
