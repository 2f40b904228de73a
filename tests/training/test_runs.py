"""A run folder's own rules: when a checkpoint is due, and a training that was finished elsewhere."""

from pathlib import Path

import pytest

from conjoint.training import TrainConfig, fit, load_run, resume_run, runs, start_run
from conjoint.training.runs import Run
from conjoint.training.stopping import snapshot
from small_training import SPEC, build, same_weights, small_data, small_model, small_split

CONFIG = TrainConfig(epochs=3, patience=0)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return start_run(tmp_path / "run", CONFIG, model=SPEC, data=small_data(), split=small_split())


def test_a_checkpoint_is_due_every_ten_seconds_or_so_many_epochs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(runs.time, "monotonic", lambda: now)
    run._saved_at = 100.0
    assert not run.due(1)
    now = 109.9
    assert not run.due(1)
    now = 110.0
    assert run.due(1)
    run._saved_at, run.every_epochs = 110.0, 3
    assert [epoch for epoch in range(1, 8) if run.due(epoch)] == [3, 6]


def test_a_training_that_was_finished_elsewhere_is_kept_whole(run: Run) -> None:
    fitted = fit(small_model(), small_data(), small_split(), CONFIG)
    (run.path / "checkpoint.safetensors").write_bytes(b"of before")
    run.adopt(fitted.history, snapshot(fitted.model), fitted.result())
    loaded, again = load_run(run.path, build)
    assert same_weights(loaded, fitted.model) and not loaded.training
    assert again.sidecar.finished and again.sidecar.result == fitted.result()
    assert resume_run(run.path).history() == fitted.history
    assert not (run.path / "checkpoint.safetensors").exists()
