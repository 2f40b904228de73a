"""One step and one evaluation, part by part; checkpoints and settings at their boundaries."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.training import Consistency, TrainConfig, fit, runs, start_run
from conjoint.training.checkpoint import _read_note
from conjoint.training.optimizer import make_optimizer
from conjoint.training.steps import (
    Batch,
    WholeSteps,
    _form_of,
    check_labels,
    part_of,
    share_right,
    with_unlabelled,
)
from small_training import SPEC, MeanModel, WholeModel, small_data, small_model, small_split

GRAPH, SPLIT = as_graph(small_data()), small_split()
CONFIG = TrainConfig(epochs=3, patience=0, row_normalise="never")


def whole(weight: Any = None) -> Batch:
    return Batch(GRAPH.x, GRAPH.adjacency, GRAPH.y, None, weight)


@pytest.mark.parametrize("field", ["auto", "whole", "receptive"])
def test_a_part_gives_the_logits_of_the_whole(field: str) -> None:
    model, nodes = small_model().eval(), torch.tensor([5, 3])
    part = part_of(whole(torch.arange(60.0)), nodes, model, field)
    assert part.labels.tolist() == GRAPH.y[nodes].tolist() and part.weight is not None
    assert part.weight.tolist() == [5.0, 3.0]
    expected = model(GRAPH.x, GRAPH.adjacency)[nodes]
    torch.testing.assert_close(part.logits(model), expected)
    assert (part.graph is GRAPH.adjacency) is (field == "whole")
    every = part_of(whole(), torch.arange(60), model, field)
    assert (every.graph is GRAPH.adjacency) is (field != "receptive") and every.weight is None


def test_a_field_is_taken_where_it_saves_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model, nodes = small_model(), torch.tensor([5, 3])
    cut: Any = part_of(whole(), nodes, model, "receptive").graph
    for share, taken in ((1.01, True), (0.99, False)):
        share *= cut.num_entries / (2 * GRAPH.adjacency.num_entries)
        monkeypatch.setattr("conjoint.training.steps.FIELD_PAYS_BELOW", share)
        assert (part_of(whole(), nodes, model, "auto").graph is not GRAPH.adjacency) is taken
    unable = WholeModel(12, 5, 3, 60)
    assert part_of(whole(), nodes, unable, "auto").graph is GRAPH.adjacency
    with pytest.raises(InputError, match="WholeModel needs the whole graph"):
        part_of(whole(), nodes, unable, "receptive")


@pytest.mark.parametrize("field", ["whole", "receptive"])
def test_a_sample_of_others_beside_those_that_train(field: str) -> None:
    config, model = replace(CONFIG, consistency=Consistency(sample=7), field=field), small_model().eval()
    torch.manual_seed(3)
    made = with_unlabelled(whole(torch.arange(60.0)), SPLIT.train, model, config)
    assert made.labels.tolist() == GRAPH.y[SPLIT.train].tolist() and made.pick is not None
    assert made.weight is not None and made.weight.tolist() == SPLIT.train.tolist()
    out = model(made.x, made.graph)
    torch.testing.assert_close(out[made.pick], model(GRAPH.x, GRAPH.adjacency)[SPLIT.train])
    if field == "receptive":  # seven more, none of which trains
        n_id = made.graph.n_id[: len(out)]
        assert len(out) == 12 + 7 and not set(n_id[12:].tolist()) & set(SPLIT.train.tolist())
    for sample in (0, 48, 99):
        options = replace(config, consistency=Consistency(sample=sample))
        every = with_unlabelled(whole(), SPLIT.train, model, options)
        assert every.graph is GRAPH.adjacency and every.pick is not None and every.weight is None
        assert every.pick.tolist() == SPLIT.train.tolist()


def test_a_step_is_one_of_adam_on_the_objective() -> None:
    ours, theirs = small_model(dropout=0.0), small_model(dropout=0.0)
    steps = WholeSteps(ours, GRAPH, SPLIT, replace(CONFIG, field="whole", clip=0.05), None)
    optimizer = make_optimizer(theirs, CONFIG)
    row = steps.train_epoch(1)
    theirs.train()
    adj = GRAPH.adjacency
    prediction = nn.functional.cross_entropy(theirs(GRAPH.x, adj)[SPLIT.train], GRAPH.y[SPLIT.train])
    penalty = theirs.penalty(adj)
    loss = prediction + CONFIG.penalty_weight * penalty
    loss.backward()
    assert row == pytest.approx(
        {"loss": loss.item(), "prediction_loss": prediction.item(), "penalty": penalty.item()}, rel=1e-5
    )
    nn.utils.clip_grad_norm_(theirs.parameters(), 0.05)
    optimizer.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    found = steps.evaluate()
    theirs.eval()
    logits = theirs(GRAPH.x, adj)[SPLIT.val]
    right = (logits.argmax(1) == GRAPH.y[SPLIT.val]).float().mean().item()
    assert found == pytest.approx(
        {"val_loss": nn.functional.cross_entropy(logits, GRAPH.y[SPLIT.val]).item(), "val_accuracy": right},
        rel=1e-4,
    )
    assert not ours.training and steps.nodes == 60


def batches_of(some: list[Batch]) -> Any:
    return lambda epoch: some


def test_losses_are_means_over_targets() -> None:
    parts = [Batch(GRAPH.x, GRAPH.adjacency, GRAPH.y[n], n) for n in (SPLIT.train[:2], SPLIT.train[2:])]
    rows = []
    for some in (parts[:1], parts[1:], parts):
        steps = WholeSteps(
            small_model(dropout=0.0), GRAPH, SPLIT, replace(CONFIG, lr=1e-12), batches_of(some)
        )
        rows.append(steps.train_epoch(1)["prediction_loss"])
    assert rows[2] == pytest.approx((2 * rows[0] + 10 * rows[1]) / 12, rel=1e-5)
    with pytest.raises(InputError, match="epoch 1 has no batches"):
        WholeSteps(small_model(), GRAPH, SPLIT, CONFIG, lambda _: []).train_epoch(1)
    with pytest.raises(InputError, match="carry weights themselves"):
        WholeSteps(small_model(), GRAPH, SPLIT, replace(CONFIG, class_weight="balanced"), lambda _: [])


def test_labels_must_be_known_to_the_model() -> None:
    check_labels(torch.tensor([0, 2]), 3)
    check_labels(torch.tensor([], dtype=torch.long), 3)
    for wrong in ([-1, 0], [0, 3]):
        with pytest.raises(InputError, match=r"without a label|class 3"):
            check_labels(torch.tensor(wrong), 3)
    assert share_right(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), torch.tensor([1, 1, 0])) == 2 / 3


SEEN = {"kept_epoch": 2, "alive_epoch": 3}


@pytest.mark.parametrize(
    ("changed", "sound"),
    [
        ({}, True),
        ({"epoch": 3}, True),
        ({"epoch": 2}, False),  # alive after its own epoch
        ({"epoch": 0}, False),
        ({"epoch": 2.5}, False),
        ({"kept_epoch": -1}, False),
        ({"alive_epoch": 9}, False),
        ({"alive_epoch": "3"}, False),
        ({"unknown": 1}, False),
    ],
)
def test_counters_of_a_checkpoint(changed: dict[str, Any], sound: bool) -> None:
    given = {**SEEN, **{name: value for name, value in changed.items() if name != "epoch"}}
    note = json.dumps({"epoch": changed.get("epoch", 5), "seen": given})
    if sound:
        epoch, seen = _read_note(note, Path("here"))
        assert epoch == changed.get("epoch", 5) and (seen.kept_epoch, seen.alive_epoch) == (2, 3)
        return
    with pytest.raises(InputError, match="here: its counters make no sense"):
        _read_note(note, Path("here"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0}, {"epochs": True}, {"epochs": 2.0}, {"lr": 0.0}, {"lr": True}, {"lr": float("inf")},
        {"weight_decay": -1e-9}, {"patience": -1}, {"clip": 0.0}, {"warmup": -1}, {"seed": -1},
        {"rule": "luck"},
        {"evaluate_every": 0}, {"field": "half"}, {"row_normalise": "no"}, {"see_test": 1},
        {"schedule": "up"},
        {"class_weight": {}}, {"class_weight": {"a": 0.0}}, {"class_weight": {"a": True}},
        {"class_weight": "b"},
        {"class_weight": {1: 1.0}}, {"class_weight": {"a": float("inf")}}, {"consistency": {"passes": 2}},
        {"penalty_weight": -0.1}, {"structural_weight_decay": -0.1}, {"rule": "release"},
    ],
)  # fmt: skip
def test_settings_of_training_have_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        TrainConfig(**wrong)


@pytest.mark.parametrize(
    "given",
    [
        {"epochs": 1}, {"lr": 1}, {"weight_decay": 0}, {"patience": 0}, {"clip": 1e-9}, {"warmup": 0},
        {"evaluate_every": 1}, {"penalty_weight": 0}, {"structural_weight_decay": 0.0},
        {"class_weight": {"a": 1, "b": 0.5}}, {"class_weight": "balanced"}, {"seed": 0},
        {"rule": "release", "see_test": True},
    ],
)  # fmt: skip
def test_settings_of_training_at_their_bounds(given: dict[str, Any]) -> None:
    made = TrainConfig(**given)
    assert all(getattr(made, name) == value for name, value in given.items())
    assert made.blind().rule == "val-loss" and not made.blind().see_test and made.passes == 1


def test_folders_of_killed_processes_are_removed_when_they_are_old(tmp_path: Path) -> None:
    old, new = (tmp_path / f".run.{name}.starting" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 61, time.time() - 61))
    os.utime(new, (time.time() - 30, time.time() - 30))
    runs._remove_abandoned(tmp_path / "run")
    assert not old.exists() and new.exists()


@pytest.mark.parametrize(
    ("ids", "kept"), [(np.arange(60), "i"), (np.array([f"a{k}" for k in range(60)], object), "U")]
)
def test_ids_are_kept_as_numbers_or_as_text(ids: Any, kept: str, tmp_path: Path) -> None:
    graph = replace(small_data(), ids=ids)
    run = start_run(tmp_path / "run", CONFIG, model=SPEC, data=graph, split=SPLIT)
    found = runs.node_ids(run)
    assert found.dtype.kind == kept and found.tolist() == ids.tolist()


def test_evaluations_are_of_some_epochs_and_the_last() -> None:
    made = fit(MeanModel(12, 5, 3, 60), GRAPH, SPLIT, replace(CONFIG, epochs=5, evaluate_every=2))
    assert ["val_loss" in row for row in made.history] == [False, True, False, True, True]
    assert made.best_epoch in (2, 4, 5) and made.metrics is made.history[made.best_epoch - 1]


def test_a_form_of_the_graph_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    prepare = MeanModel.prepare

    def counted(self: MeanModel, *args: Any) -> Any:
        made.append(1)
        return prepare(self, *args)

    monkeypatch.setattr(MeanModel, "prepare", counted)
    graph = as_graph(small_data())
    for form, count in ((None, 2), ("a form", 3)):
        monkeypatch.setattr(MeanModel, "form", form, raising=False)
        for _ in range(2):
            _form_of(graph, small_model(), torch.device("cpu"))
        assert len(made) == count


def test_weights_of_labels_count_in_both_losses() -> None:
    model, weight = small_model(dropout=0.0), torch.ones(60)
    weight[SPLIT.train[0]], weight[SPLIT.val[0]] = 5.0, 3.0
    graph = replace(GRAPH, label_weight=weight)
    steps = WholeSteps(model, graph, SPLIT, replace(CONFIG, field="whole", lr=1e-12), None)
    row = steps.train_epoch(1)
    losses = nn.functional.cross_entropy(
        small_model(dropout=0.0).train()(GRAPH.x, GRAPH.adjacency), GRAPH.y, reduction="none"
    ).detach()
    train = weight[SPLIT.train]
    assert row["prediction_loss"] == pytest.approx(
        float((train * losses[SPLIT.train]).sum() / train.sum()), rel=1e-4
    )
    model.eval()
    with torch.no_grad():
        losses = nn.functional.cross_entropy(model(GRAPH.x, GRAPH.adjacency), GRAPH.y, reduction="none")
    val = weight[SPLIT.val]
    expected = float((val * losses[SPLIT.val]).sum() / val.sum())
    assert steps.evaluate()["val_loss"] == pytest.approx(expected, rel=1e-4)
