"""Ctrl-C, a second trainer, too little memory: what a shared machine does to a process."""

import resource
import signal
import time
from pathlib import Path

import pytest

from conjoint.cli import main
from faults.program import one_line, start
from own_files import train_arguments, write_own_files

LONG = (
    "--seeds",
    "1",
    "--epochs",
    "100000",
    "--patience",
    "0",
    "--split",
    "hold-out",
    "--no-plots",
    "--quiet",
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_own_files(tmp_path)
    return tmp_path


def until_training(run: Path, seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").stat().st_size:
        assert time.monotonic() < end, "training did not start"
        time.sleep(0.02)


@pytest.mark.timeout(400)
def test_a_second_trainer_is_refused_and_two_ctrl_c_end_the_first(
    files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second Ctrl-C may come before the first has been answered; the folder must be sound either way."""
    run = files / "run"
    process = start(*train_arguments(files, *LONG, "--out", run))
    until_training(run)
    assert main(["train", "--resume", str(run), "--quiet"]) == 2
    assert "another process trains there" in one_line(capfd.readouterr().err)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    said = one_line(error)
    assert "interrupted" in said or "go on with: conjoint train --resume" in said

    process = start("train", "--resume", run, "--no-plots", "--quiet")  # the folder is free again
    lines = (run / "metrics.jsonl").read_text().count("\n")
    end = time.monotonic() + 200
    while (run / "metrics.jsonl").read_text().count("\n") <= lines:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "go on with: conjoint train --resume" in one_line(error)


@pytest.mark.timeout(400)
def test_too_little_memory_is_one_line_with_the_remedy(files: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

    words = [
        "train",
        "cora",
        "--hidden",
        "4000",
        "--heads",
        "400",
        "--epochs",
        "2",
        "--seeds",
        "1",
        "--quiet",
    ]
    process = start(*words, "--no-plots", "--out", files / "run", before=limit)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 2, error
    said = one_line(error)
    assert "not enough memory" in said and "--hidden" in said and "--heads" in said
