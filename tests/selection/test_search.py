import json
from dataclasses import replace
from pathlib import Path

import pytest

from conjoint import defaults
from conjoint.errors import Diverged, InputError
from conjoint.selection.tune import (
    RECOMMENDED,
    Budget,
    Tried,
    best_of,
    distributions,
    read_trials,
    settings_at,
    tune,
)
from conjoint.training import TrainConfig
from small_training import small_data, small_split

POINT = {
    "model": "cat-e-smooth",
    "hidden": 16,
    "dropout": 0.5,
    "lr": 0.01,
    "weight_decay": 1e-4,
    "consistent": True,
    "passes": 2,
    "weight": 1.0,
    "temperature": 0.5,
    "ramp": 50,
}
QUICK = Budget(minutes=5.0, trials=3, seeds=1, epochs=3, patience=0)


def test_a_point_is_read_as_settings_of_network_and_training() -> None:
    network, training = settings_at(POINT)
    assert network == {"name": "cat-e-smooth", "hidden": 16, "dropout": 0.5}
    assert training == {
        "lr": 0.01,
        "weight_decay": 1e-4,
        "consistency": {"passes": 2, "weight": 1.0, "temperature": 0.5, "ramp": 50},
    }
    assert "consistency" not in settings_at({**POINT, "consistent": False})[1]
    assert POINT.keys() == distributions().keys()


def test_accuracy_decides_and_then_loss() -> None:
    trials = [Tried(POINT, 0.8, 0.5, 1.0), Tried(POINT, 0.9, 0.7, 1.0), Tried(POINT, 0.9, 0.6, 1.0)]
    assert best_of(trials) is trials[2]


def test_a_search_keeps_its_trials_and_goes_on(tmp_path: Path) -> None:
    data = small_data()
    split = small_split()
    first = tune(data, split, tmp_path, budget=QUICK)
    assert len(first) == 3
    assert read_trials(tmp_path) == first
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"point": {"mod')  # killed while it wrote
    longer = Budget(minutes=5.0, trials=4, seeds=1, epochs=3, patience=0)
    again = tune(data, split, tmp_path, budget=longer)
    assert again[:3] == first and len(again) == 4
    assert read_trials(tmp_path) == again


def test_the_same_seed_tries_the_same(tmp_path: Path) -> None:
    data = small_data()
    split = small_split()
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        trials = tune(data, split, tmp_path / name, budget=QUICK, base=TrainConfig(seed=seed))
        found.append([(trial.point, trial.val_accuracy, trial.val_loss) for trial in trials])
    assert found[0] == found[1] != found[2]


def test_the_time_is_kept(tmp_path: Path) -> None:
    data = small_data()
    budget = Budget(minutes=1e-9, seeds=1, epochs=100_000, patience=0)
    assert tune(data, small_split(), tmp_path, budget=budget) == []


def test_a_diverging_trial_is_the_worst_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blow_up(*_: object, **__: object) -> None:
        raise Diverged("loss is nan")

    monkeypatch.setattr("conjoint.selection.tune.fit", blow_up)
    data = small_data()
    trials = tune(data, small_split(), tmp_path, budget=Budget(trials=2, seeds=1))
    assert [trial.val_accuracy for trial in trials] == [0.0, 0.0]
    assert read_trials(tmp_path) == trials


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[]",
        json.dumps({"point": {}, "val_accuracy": 1, "val_loss": 1, "seconds": 1}),
        json.dumps({"point": {**POINT, "model": "rm -rf"}, "val_accuracy": 1, "val_loss": 1, "seconds": 1}),
        json.dumps({"point": {**POINT, "dropout": 7.0}, "val_accuracy": 1, "val_loss": 1, "seconds": 1}),
        json.dumps({"point": POINT, "val_accuracy": "high", "val_loss": 1, "seconds": 1}),
    ],
)
def test_foreign_lines_are_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "trials.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1: not a trial"):
        read_trials(tmp_path)


def test_the_recommended_setting_is_a_point_of_the_space_and_is_tried_first(tmp_path: Path) -> None:
    network, training = settings_at(RECOMMENDED)
    assert network == {"name": "spread-trust", "hidden": 32, "dropout": 0.5}
    assert all(training[name] == defaults.TRAIN[name] for name in ("lr", "consistency"))
    tried = tune(small_data(), small_split(), tmp_path, budget=replace(QUICK, trials=1))
    assert tried[0].point == {**RECOMMENDED}


def test_trials_of_an_earlier_version_had_no_ramp(tmp_path: Path) -> None:
    old = {name: value for name, value in POINT.items() if name != "ramp"}
    line = {"point": old, "val_accuracy": 0.5, "val_loss": 1.0, "seconds": 1.0}
    (tmp_path / "trials.jsonl").write_text(json.dumps(line) + "\n")
    assert read_trials(tmp_path)[0].point == {**POINT, "ramp": 0}
