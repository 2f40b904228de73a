"""Logs as TensorBoard and MLflow themselves read them."""

from pathlib import Path

import pytest

from conjoint.cli import main
from conjoint.errors import InputError
from conjoint.training.loggers import check_log, logger

ROWS = [{"epoch": k, "lr": 0.1, "val_loss": 1.0 / k, "rule": "gat", "saw_test": True} for k in (1, 2)]


def write(where: str) -> None:
    with logger(where, "a b") as log:
        for row in ROWS:
            log(row)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write(f"tensorboard:{tmp_path}")
    (folder,) = tmp_path.iterdir()
    found = EventAccumulator(str(folder)).Reload()
    assert set(found.Tags()["scalars"]) == {"lr", "val_loss"}
    assert [(one.step, one.value) for one in found.Scalars("val_loss")] == [(1, 1.0), (2, 0.5)]


@pytest.mark.filterwarnings("default")
def test_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    pytest.importorskip("sqlalchemy", reason="needs the extra mlflow")
    write(f"mlflow:{tmp_path}")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("conjoint").experiment_id])
    assert (run.info.run_name, run.info.status) == ("a b", "FINISHED")
    history = client.get_metric_history(run.info.run_id, "val_loss")
    assert [(one.step, one.value) for one in history] == [(1, 1.0), (2, 0.5)]


@pytest.mark.parametrize("where", ["wandb:x", "tensorboard", "tensorboard:"])
def test_other_logs_are_refused(where: str) -> None:
    with pytest.raises(InputError, match=f"--log {where}: write TOOL:FOLDER"), logger(where, "a"):
        pass


def test_a_wrong_log_is_told_before_anything_is_written(tmp_path: Path) -> None:
    assert main(["train", "--log", "wandb:x", "--out", str(tmp_path / "run")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_command_logs_every_epoch(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ["--model", "gat", "--seed", "0", "--epochs", "3", "--no-plots", "--quiet"]
    logs = tmp_path / "logs"
    assert main(["train", *options, "--log", f"tensorboard:{logs}", "--out", str(tmp_path / "run")]) == 0
    (folder,) = logs.iterdir()
    assert [one.step for one in EventAccumulator(str(folder)).Reload().Scalars("loss")] == [1, 2, 3]


def test_a_tool_that_is_not_there_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjoint.training.loggers.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"mlflow is not installed; pip install conjoint\[mlflow\]"):
        check_log("mlflow:logs")
