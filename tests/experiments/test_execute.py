"""From a spec to a row, on the Cora that ships with the package."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.experiments.execute import ReleaseWatcher, _forget_peak_memory, _memory, execute
from conjoint.experiments.rows import spec_from
from conjoint.graph.graph import Graph
from conjoint.training import TrainConfig, evaluate, fit
from fake_rows import cora
from research import damage
from small_training import same_weights, small_data, small_model, small_split

CONFIG = TrainConfig(epochs=60, patience=15, lr=0.02, seed=5)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)


def test_a_row_says_what_was_run_and_what_came_out() -> None:
    spec = cora("cat-i-mf")
    row = execute(spec)
    assert row["key"] == spec.key and spec_from(row) == spec
    assert row["epochs"] == 3 and row["stopped"] == "epochs" and row["saw_test"] is False
    assert 0 < row["test_accuracy"] < 1 and 0 < row["all_accuracy"] < 1 and 0 < row["val_accuracy"] < 1
    assert row["release"]["saw_test"] is True
    seen = execute(replace(spec, train_settings={**spec.train_settings, "rule": "release", "see_test": True}))
    assert row["release"]["test_accuracy"] == seen["test_accuracy"]
    assert row["release"]["best_epoch"] == seen["best_epoch"]
    assert row["parameters"] == 111285  # the paper's Table 5
    assert row["grown_mib"] < row["peak_mib"]
    assert row["made_with"]["torch"].startswith("2.")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux forgets a peak")
def test_the_peak_is_counted_from_the_moment_it_is_forgotten() -> None:
    held = _forget_peak_memory()
    block = torch.ones(40 * 2**20)  # of 160 MiB
    grown = _memory("VmHWM") - held
    assert 150 < grown < 200, block.shape
    del block
    assert _forget_peak_memory() < held + 100


def test_the_authors_rule_is_watched_only_in_runs_of_the_papers_kind() -> None:
    spec = cora("gat")
    consistent = {**spec.train_settings, "consistency": {"passes": 2, "weight": 1.0}}
    assert "release" in execute(spec)
    assert "release" not in execute(replace(spec, variant={"add-edges": {"share": 0.5}}))
    assert "release" not in execute(replace(spec, train_settings=consistent))


def test_the_same_spec_gives_the_same_numbers() -> None:
    one, other = execute(cora("gat")), execute(cora("gat"))
    for name in ("val_loss", "test_accuracy", "all_accuracy", "best_epoch", "release"):
        assert one[name] == other[name]


def test_joined_features_reach_the_model() -> None:
    plain, joined = execute(cora("gat")), execute(cora("gat-klap"))
    assert joined["parameters"] == plain["parameters"] + 64 * 64  # 64 eigenvectors into 64 hidden units


def test_a_run_that_diverges_gives_a_row_that_says_so() -> None:
    spec = cora("gat")
    row = execute(replace(spec, train_settings={**spec.train_settings, "lr": 1e30}))
    assert "failed" in row and "lr" in row["failed"]
    assert "test_accuracy" not in row


def test_variants_change_the_graph_and_leave_the_kept_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_edges(data: Graph, options: Mapping[str, Any], rng: np.random.Generator) -> Graph:
        return data.changed(edges=data.edge_index[:, : options["keep"]])

    monkeypatch.setitem(damage.VARIANTS, "few-edges", without_edges)
    before = execute(cora("gat"))
    few = execute(replace(cora("gat"), variant={"few-edges": {"keep": 2}}))
    assert few["val_loss"] != before["val_loss"] and few["key"] != before["key"]
    assert execute(cora("gat"))["val_loss"] == before["val_loss"]


def test_a_split_can_have_settings() -> None:
    few = execute(replace(cora("gcn"), split_settings={"train_per_class": 2}))
    assert few["split_settings"] == {"train_per_class": 2} and spec_from(few).split_settings
    assert few["key"] != cora("gcn").key
    assert few["val_loss"] != execute(cora("gcn"))["val_loss"]


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(InputError, match="variant 'fog' is not known"):
        execute(replace(cora("gat"), variant={"fog": {}}))


def test_the_watcher_sees_what_the_release_rule_would_have_kept() -> None:
    data, split = small_data(), small_split()
    model = small_model()
    watcher = ReleaseWatcher(model, data, split, CONFIG)
    honest = fit(model, data, split, CONFIG, progress=watcher)

    by_test = replace(CONFIG, rule="release", see_test=True)
    release = fit(small_model(), data, split, by_test)
    expected = evaluate(release, data, split)

    seen = watcher.report()
    assert seen["saw_test"] is True and seen["rule"] == "release"
    assert seen["best_epoch"] == release.best_epoch
    assert seen["test_accuracy"] == expected["test_accuracy"]
    assert seen["all_accuracy"] == expected["all_accuracy"]
    assert len(honest.history) == len(release.history)  # both run out of patience together


def test_watching_changes_nothing() -> None:
    data, split = small_data(), small_split()
    watched, alone = small_model(), small_model()
    one = fit(watched, data, split, CONFIG, progress=ReleaseWatcher(watched, data, split, CONFIG))
    other = fit(alone, data, split, CONFIG)
    assert one.history == other.history
    assert same_weights(watched, alone)


def test_epochs_that_were_not_evaluated_are_passed_over() -> None:
    data, split, config = small_data(), small_split(), replace(CONFIG, evaluate_every=7)
    model = small_model()
    watcher = ReleaseWatcher(model, data, split, config)
    fit(model, data, split, config, progress=watcher)
    assert watcher.report()["best_epoch"] in {*range(7, 60, 7), 60}
