"""One network from every label: a first training chooses the epochs and is judged, a second has them all."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import conjoint
from conjoint.errors import InputError, Interrupted
from conjoint.graph.graph import Graph
from conjoint.graph.splits import Split, every_label
from conjoint.nn.model import NodeModel
from conjoint.selection.all_labels import TRAININGS, learn_from_all
from conjoint.selection.choose import Choice
from conjoint.selection.folds import judging_split
from conjoint.selection.learner import decide, train_graph, train_one
from conjoint.selection.portfolio import JUDGED
from conjoint.selection.setting import make_setting
from conjoint.training import (
    BatchConfig,
    ModelSpec,
    TrainConfig,
    fit,
    load_run,
    predict_proba,
    resume_run,
    start_run,
)
from conjoint.training.closed_form import fit_closed_form
from small_training import same_weights
from topics import topic_graph

GRAPH = topic_graph(90, words=20, random_edges=400)
ALL = every_label(GRAPH.y.numpy(), 0)
FIRST = judging_split(GRAPH, ALL)
SPEC = ModelSpec("gcn", GRAPH.num_features, GRAPH.num_classes, GRAPH.num_nodes)
CONFIG = TrainConfig(epochs=25, patience=0, lr=0.2, schedule="cosine", evaluate_every=2, seed=3)


def build() -> NodeModel:
    return SPEC.build(CONFIG.seed)


def learnt(graph: Graph = GRAPH, split: Split = ALL, config: TrainConfig = CONFIG, **more: Any) -> Any:
    return learn_from_all(build, graph, split, config, spec=SPEC, **more)


def shown() -> tuple[dict[str, list[dict[str, Any]]], Any]:
    """Rows of the trainings by their titles, and what watches for them."""
    rows: dict[str, list[dict[str, Any]]] = {}

    class Watching:
        def __init__(self, title: str, epochs: int) -> None:
            self.rows: list[dict[str, Any]] = []
            rows[f"{title}, {epochs} epochs"] = self.rows

        def __enter__(self) -> Any:
            return self.rows.append

        def __exit__(self, *_: object) -> None:
            pass

    return rows, Watching


def test_the_first_training_is_one_without_the_judged_nodes_and_the_second_one_of_all_labels() -> None:
    rows, watch = shown()
    fitted, spec, judged = learnt(watch=watch)
    nodes = FIRST.reveal_test()
    first = build()
    alone = fit(first, GRAPH, Split(FIRST.train, FIRST.val, "without"), CONFIG)  # no judged node in sight
    assert fitted.history == alone.history and fitted.best_epoch == alone.best_epoch
    assert fitted.metrics["val_loss"] == alone.metrics["val_loss"]
    assert judged[0].tolist() == nodes.tolist() and not set(nodes.tolist()) & set(FIRST.train.tolist())
    assert np.array_equal(judged[1], predict_proba(first, GRAPH, CONFIG)[nodes].numpy())

    epochs, second = alone.best_epoch, build()
    assert 1 < epochs < CONFIG.epochs
    stop = replace(CONFIG, patience=0, evaluate_every=epochs)
    fit(second, GRAPH, Split(ALL.train, ALL.train, "all"), stop, progress=lambda row: row["epoch"] >= epochs)
    assert same_weights(second, fitted.model) and not same_weights(first, fitted.model)
    assert fitted.config == CONFIG and spec == SPEC

    early, late = rows.values()
    assert list(rows) == [
        "gcn seed 3, first training, 25 epochs", f"gcn seed 3, all labels, {epochs} epochs"
    ]  # fmt: skip
    assert early == fitted.history and len(late) == epochs
    assert [row["lr"] for row in late] == [row["lr"] for row in early[:epochs]]
    assert not any(name.startswith("val_") for row in late for name in row)  # of labels that train


def test_every_label_moves_the_weights_and_a_judged_one_nothing_else() -> None:
    """A label is made to count more: where the labels are cut does not depend on that."""
    usual, _, said = learnt(GRAPH.changed(label_weight=torch.ones(GRAPH.num_nodes)))
    for node in [*FIRST.reveal_test().tolist(), *FIRST.train[:3].tolist(), *FIRST.val[:3].tolist()]:
        weight = torch.ones(GRAPH.num_nodes)
        weight[node] = 5.0
        fitted, _, judged = learnt(GRAPH.changed(label_weight=weight))
        assert not same_weights(fitted.model, usual.model)
        if node in FIRST.reveal_test():
            assert fitted.history == usual.history and fitted.best_epoch == usual.best_epoch
            assert np.array_equal(judged[1], said[1])


def test_where_labels_are_too_few_all_train_and_nothing_is_an_estimate() -> None:
    few = Split(torch.arange(9), torch.empty(0, dtype=torch.int64), "all", 0)
    rows, watch = shown()
    fitted, _, judged = learnt(split=few, watch=watch)
    alone = fit(build(), GRAPH, Split(few.train, few.train, "all"), CONFIG)
    assert judged is None and same_weights(alone.model, fitted.model)
    assert list(rows) == ["gcn seed 3, first training, 25 epochs"]
    assert not any(name.startswith("val_") for row in rows.popitem()[1] for name in row)
    one = train_one(make_setting("gcn", train={"epochs": 5}), GRAPH, few, 0)
    assert one.use_of_labels == "all 9 labelled nodes train, too few to judge by" and not one.judged
    assert not {"estimate", "val_accuracy", "test_accuracy"} & one.row().keys()


def test_a_rule_that_looks_at_test_nodes_needs_some() -> None:
    config = replace(CONFIG, rule="release", see_test=True)
    with pytest.raises(InputError, match="here every label trains; name a split that has some"):
        learnt(config=config)
    setting = make_setting("gcn", train={"rule": "release", "see_test": True})
    with pytest.raises(InputError, match="every label trains"):
        train_graph(GRAPH.changed(benchmark=False), model="gcn", train=setting.train)
    assert train_graph(GRAPH, model="gcn", train={**setting.train, "epochs": 2}, split="hold-out").best


@pytest.mark.parametrize("name", ["logistic", "label-propagation", "boosting"])
def test_a_closed_form_is_fitted_to_all_labels_as_the_first_fit_chose(name: str) -> None:
    settings = {"hops": "0"} if name == "logistic" else {}
    spec = replace(SPEC, name=name, settings=settings)
    fitted, made, judged = learn_from_all(build, GRAPH, ALL, CONFIG, spec=spec)
    first, _ = fit_closed_form(name, settings, GRAPH, FIRST, CONFIG)
    nodes = FIRST.reveal_test()
    assert fitted.history == first.history and judged is not None and made is not None
    with torch.no_grad():
        said = first.model(GRAPH.x, GRAPH.adjacency).softmax(dim=1)[nodes].numpy()
    assert np.allclose(judged[1], said)
    every = Split(ALL.train, FIRST.val, "all", 0)
    again, kept = fit_closed_form(name, settings, GRAPH, every, CONFIG, first)
    assert same_weights(again.model, fitted.model) and made.settings == kept
    assert again.metrics["chosen"] == first.metrics["chosen"]
    if name == "logistic":  # another choice would be another model
        other = replace(first, history=[{**first.history[0], "chosen": 0.1}])
        assert first.metrics["chosen"] > 0.1
        assert not same_weights(
            fit_closed_form(name, settings, GRAPH, every, CONFIG, other)[0].model, again.model
        )
    else:
        kept, before = (one.model.state_dict()["labels"][nodes] for one in (fitted, first))
        assert (kept == GRAPH.y[nodes]).all() and not (before == GRAPH.y[nodes]).any()


def files(path: Path) -> dict[str, bytes]:
    kept = {one.name: one.read_bytes() for one in path.iterdir() if one.is_file()}
    assert kept.pop("config.toml") and set(kept) == {
        "weights.safetensors", "metrics.jsonl", "model.json", "node_ids.npy", "labels.npy", JUDGED, ".lock"
    }  # fmt: skip
    assert not (path / TRAININGS).exists()
    return kept


@pytest.mark.parametrize(("training", "epoch"), [("first training", 7), ("all labels", 2)])
def test_ctrl_c_in_either_training_loses_nothing(tmp_path: Path, training: str, epoch: int) -> None:
    start: dict[str, Any] = {"model": SPEC, "data": GRAPH, "split": ALL}
    whole = learnt(run=start_run(tmp_path / "whole", CONFIG, **start))
    without = learnt()
    assert same_weights(whole[0].model, without[0].model) and whole[0].history == without[0].history

    def watch(title: str, epochs: int) -> Any:
        class Pressing:
            def __enter__(self) -> Any:
                return self.press

            def __exit__(self, *_: object) -> None:
                pass

            def press(self, row: dict[str, Any]) -> None:
                if title.endswith(training) and row["epoch"] == epoch:
                    signal.raise_signal(signal.SIGINT)

        return Pressing()

    with pytest.raises(Interrupted):
        learnt(run=start_run(tmp_path / "cut", CONFIG, **start), watch=watch)
    rows, watch = shown()
    again = learnt(run=resume_run(tmp_path / "cut"), watch=watch)
    titles = {title.rpartition(", ")[0]: [row["epoch"] for row in seen] for title, seen in rows.items()}
    if training == "first training":
        assert titles["gcn seed 3, first training"] == list(range(epoch + 1, 26))
    else:
        best = whole[0].best_epoch
        assert titles == {
            "gcn seed 3, first training": [],
            "gcn seed 3, all labels": list(range(epoch + 1, best + 1)),
        }
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    assert np.array_equal(again[2][1], whole[2][1])
    finished = learnt(run=resume_run(tmp_path / "cut"), watch=lambda *_: pytest.fail("it was finished"))
    assert same_weights(finished[0].model, whole[0].model) and finished[0].history == whole[0].history
    assert np.array_equal(finished[2][1], whole[2][1])
    assert same_weights(load_run(tmp_path / "cut")[0], whole[0].model)


@pytest.mark.parametrize("few", [False, True])
def test_a_run_killed_at_a_write_ends_with_the_same_bits(few: bool) -> None:
    """Real processes, killed at many of the calls that change the folder, before them or right after."""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # many fsyncs: spare the disk
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(conjoint.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=in_memory) as scratch:
        script = Path(__file__).with_name("two_trainings.py")
        command = [sys.executable, str(script), scratch, str(int(few))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= 8 and found["unlike"] == []


def test_a_training_that_was_done_while_choosing_is_the_first(tmp_path: Path) -> None:
    setting = make_setting(intervention="auto", settings={"hidden": 4, "heads": 2}, train={"epochs": 6})
    asked: list[Split] = []
    first = fit(build(), GRAPH, FIRST, CONFIG)

    def choose(graph: Graph, split: Split, *_: object, **__: object) -> Choice:
        asked.append(split)
        return Choice("gcn", ("gcn",), (), None, {3: (first, 2.5)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conjoint.selection.learner.CHOOSE", {"auto": choose})
        decided, choice = decide(setting, GRAPH, ALL, 3)
    assert torch.equal(asked[0].train, FIRST.train) and torch.equal(asked[0].val, FIRST.val)
    assert choice is not None
    alike = replace(decided, settings={}, train={name: getattr(CONFIG, name) for name in ("epochs", "lr")})
    alike = replace(alike, train={**alike.train, "patience": 0, "schedule": "cosine", "evaluate_every": 2})
    assert alike.config(3) == CONFIG
    rows, watch = shown()
    run = start_run(tmp_path / "run", CONFIG, model=SPEC, data=GRAPH, split=ALL)
    found = train_one(alike, GRAPH, ALL, 3, choice=choice, run=run, watch=watch)
    assert [title.rpartition(", ")[0] for title in rows] == ["gcn seed 3, all labels"] and found.seconds > 2.5
    assert same_weights(found.fitted.model, learnt()[0].model) and found.fitted.history == first.history


def test_in_batches_the_judged_nodes_are_asked_exactly() -> None:
    config = replace(CONFIG, epochs=4, evaluate_every=1)
    batches = BatchConfig(kind="neighbours", size=15, fanout=(4, 3), per_step=2)
    spec = replace(SPEC, name="cat-i-mf", settings={"hidden": 4, "heads": 2})

    def attention() -> NodeModel:
        return spec.build(0)

    fitted, _, judged = learn_from_all(attention, GRAPH, ALL, config, spec=spec, batches=batches)
    first = fit(attention(), GRAPH, Split(FIRST.train, FIRST.val, "without"), config, batches=batches)
    said = predict_proba(first.model, GRAPH, config)[FIRST.reveal_test()].numpy()
    assert judged is not None and fitted.history == first.history
    assert judged[0].tolist() == FIRST.reveal_test().tolist() and judged[1] == pytest.approx(said, abs=1e-6)
    assert not same_weights(fitted.model, first.model)
    constant = replace(config, schedule="constant")
    fitted = learn_from_all(attention, GRAPH, ALL, constant, spec=spec, batches=batches)[0]
    epochs = replace(constant, epochs=fitted.best_epoch, evaluate_every=fitted.best_epoch)
    every = fit(attention(), GRAPH, Split(ALL.train, ALL.train, "all"), epochs, batches=batches)
    assert same_weights(every.model, fitted.model)


def test_the_row_of_results_tells_of_the_nodes_that_did_not_train() -> None:
    made = train_graph(GRAPH.changed(benchmark=False), model="gcn", seed=3, train={"epochs": 20})
    best, row = made.best, made.best.row()
    nodes, shares = best.judged["unseen"]
    right = float((shares.argmax(axis=1) == GRAPH.y[nodes].numpy()).mean())
    assert (
        row["val_accuracy"] == pytest.approx(right, abs=1e-6)
        and row["estimate"]["accuracy"] == row["val_accuracy"]
    )
    assert sum(one["nodes"] for one in row["classes"]["unseen"]) == len(nodes) == 9
    assert best.use_of_labels == (
        "all 90 labelled nodes train; a first training without 18 of them chose the epochs by 9 and is "
        "judged by 9"
    )
    assert "test_accuracy" not in row and row["val_loss"] == best.fitted.metrics["val_loss"]
