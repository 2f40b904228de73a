"""A run that was stopped in any way goes on as if nothing had happened."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conjoint import storage
from conjoint.errors import InputError, Interrupted, StorageError
from conjoint.training import Fitted, TrainConfig, fit, load_run, resume_run, start_run
from conjoint.training.runs import Run
from small_training import SPEC, build, same_weights, small_data, small_model, small_split

CONFIG = TrainConfig(epochs=12, patience=0)
HERE = Path(__file__).parent


def new_run(path: Path, config: TrainConfig = CONFIG) -> Run:
    return start_run(path, config, model=SPEC, data=small_data(), split=small_split())


def train(run: Run, **options: Any) -> Fitted:
    return fit(run.build_model(build), small_data(), small_split(), run.config, run=run, **options)


def files(path: Path) -> dict[str, bytes]:
    return {
        name: (path / name).read_bytes() for name in ("weights.safetensors", "metrics.jsonl", "model.json")
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork their children")
def test_runs_killed_at_any_point_end_with_the_same_bits() -> None:
    paths = os.pathsep.join([str(HERE.parent), str(HERE.parents[1] / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # hundreds of fsyncs: spare the disk
    with tempfile.TemporaryDirectory(dir=in_memory) as scratch:
        command = [sys.executable, str(HERE / "kill_trials.py"), scratch]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kills"] >= 40
    unlike = [o for o in result["outcomes"] if o != result["outcomes"][0]]
    assert not unlike


def test_a_run_with_folder_and_one_without_agree(tmp_path: Path) -> None:
    without = fit(small_model(), small_data(), small_split(), CONFIG)
    with_folder = train(new_run(tmp_path / "run"))
    assert without.history == with_folder.history and same_weights(without.model, with_folder.model)
    assert resume_run(tmp_path / "run").history() == without.history


@pytest.mark.parametrize("stop_at", [1, 5, 11])
def test_ctrl_c_ends_the_epoch_saves_and_says_how_to_go_on(tmp_path: Path, stop_at: int) -> None:
    import signal

    train(new_run(tmp_path / "whole"))

    def press(row: dict[str, Any]) -> None:
        if row["epoch"] == stop_at:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match=rf"epoch {stop_at}; go on with: conjoint train --resume .*run"):
        train(new_run(tmp_path / "run"), progress=press)
    assert signal.getsignal(signal.SIGINT) is handler
    resumed: list[int] = []
    train(resume_run(tmp_path / "run"), progress=lambda row: resumed.append(row["epoch"]))
    assert resumed == list(range(stop_at + 1, 13))
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_resuming_a_finished_run_gives_it_back(tmp_path: Path) -> None:
    first = train(new_run(tmp_path / "run"))
    before = files(tmp_path / "run")
    again = train(resume_run(tmp_path / "run"))
    assert same_weights(first.model, again.model)
    assert (again.history, again.best_epoch, again.stopped) == (
        first.history,
        first.best_epoch,
        first.stopped,
    )
    assert files(tmp_path / "run") == before


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    for name in ("run", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious.txt").write_text("mine")
        with pytest.raises(InputError, match="already there and never overwritten; resume it with --resume"):
            new_run(tmp_path / name)
        assert [p.name for p in (tmp_path / name).iterdir()] == ["precious.txt"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="never overwritten"):
        new_run(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert new_run(tmp_path / "empty").path.is_dir()


def test_a_run_goes_on_only_with_its_own_settings_graph_and_split(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    model, data, split = run.build_model(build), small_data(), small_split()
    with pytest.raises(InputError, match="other settings"):
        fit(model, data, split, replace(CONFIG, lr=0.02), run=run)
    with pytest.raises(InputError, match="another split"):
        fit(model, data, replace(split, train=split.train[1:]), CONFIG, run=run)
    data = data.changed(given_x=data.x + 1)
    with pytest.raises(InputError, match=r"another graph \(small\)"):
        fit(model, data, split, CONFIG, run=run)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(new_run(tmp_path / "whole"))
    run = new_run(tmp_path / "run")
    run.every_epochs = 2
    saved = 0
    real = os.fsync

    def full(handle: int) -> None:
        nonlocal saved
        if Path(os.readlink(f"/proc/self/fd/{handle}")).name.startswith(".checkpoint"):
            saved += 1
            if saved == 3:
                raise OSError(28, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"checkpoint.safetensors: cannot write \(no space left"):
            train(run)
    assert not [p.name for p in run.path.iterdir() if p.name.endswith(".tmp")]
    resumed: list[int] = []
    train(resume_run(tmp_path / "run"), progress=lambda row: resumed.append(row["epoch"]))
    assert resumed[0] == 5  # epochs 1 to 4 were safe
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_a_line_cut_short_by_a_full_disk_is_trimmed_on_resume(tmp_path: Path) -> None:
    train(new_run(tmp_path / "whole"))
    run = new_run(tmp_path / "run")

    def stop(row: dict[str, Any]) -> None:
        import signal

        if row["epoch"] == 6:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(run, progress=stop)
    with open(run.path / "metrics.jsonl", "ab") as file:
        file.write(b'{"epoch": 7, "lo')
    train(resume_run(run.path))
    assert files(tmp_path / "run") == files(tmp_path / "whole")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="permission denied"):
            new_run(tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(StorageError, match=r"run: cannot write \(read-only file system\)"):
        new_run(tmp_path / "run")


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    with run.training(), pytest.raises(InputError, match="another process trains there"):
        train(resume_run(run.path))
    train(resume_run(run.path))


def test_a_short_write_is_an_error(tmp_path: Path) -> None:
    storage.append_line(tmp_path / "lines", "one")
    with pytest.raises(StorageError, match="no such file or directory"):
        storage.append_line(tmp_path / "missing" / "lines", "one")
    assert (tmp_path / "lines").read_text() == "one\n"


def test_an_unfinished_run_cannot_be_loaded(tmp_path: Path) -> None:
    new_run(tmp_path / "run")
    with pytest.raises(InputError, match="not finished; go on with it first"):
        load_run(tmp_path / "run", build)


def test_resuming_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such run folder; start one without --resume"):
        resume_run(tmp_path / "nothing")
