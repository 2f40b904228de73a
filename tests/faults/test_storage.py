"""Disks that fill up, folders that cannot be written, files that go away: one line, and nothing is lost."""

import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conjoint.cli import main
from conjoint.experiments.rows import append_row, read_rows
from fake_portrait import portrait
from fake_runs import made_up, specs
from faults.program import one_line, start
from own_files import train_arguments, write_own_files

Remount = Callable[[str], None]
QUICK = ("--seeds", "1", "--epochs", "8", "--patience", "0", "--no-plots", "--quiet")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Remount]]:
    """A file system of its own in memory, and a function that changes its options."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    try:
        subprocess.run(mounted, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system can be mounted only by root")

    def remount(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True, capture_output=True)

    yield disk, remount
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a user's graph, and the run that training on them gives when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write_own_files(folder)
    assert main([*train_arguments(folder, *QUICK, "--out", folder / "run")]) == 0
    return folder


def bits(run: Path) -> list[bytes]:
    names = ("weights.safetensors", "metrics.jsonl", "model.json", "predictions.csv", "node_ids.npy")
    return [(run / name).read_bytes() for name in names]


@pytest.mark.parametrize("size", ["8k", "16k", "24k", "32k", "40k", "64k"])
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    undisturbed: Path,
    small_disk: tuple[Path, Remount],
    size: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    disk, remount = small_disk
    remount(f"size={size}")
    out = disk / "run"
    status = main(train_arguments(undisturbed, *QUICK, "--out", out))
    if status:
        assert status == 2
        said = one_line(capfd.readouterr().err)
        assert "no space left" in said or "cannot" in said, said
    remount("size=64m")
    words = ["train", "--resume", str(out), "--no-plots", "--quiet"]
    if not out.exists():
        words = train_arguments(undisturbed, *QUICK, "--out", out)
    assert main(words) == 0, capfd.readouterr().err
    assert bits(out) == bits(undisturbed / "run")


def test_a_limit_on_file_sizes_is_one_line(undisturbed: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    process = start(*train_arguments(undisturbed, *QUICK, "--out", tmp_path / "run"), before=limit)
    _, error = process.communicate(timeout=240)
    assert process.returncode == 2 and "file too large" in one_line(error)
    assert (
        not (tmp_path / "run").exists() or main(["train", "--resume", str(tmp_path / "run"), "--quiet"]) == 0
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    append_row(folder, made_up(specs(1)[0]))
    (folder / "report").mkdir()
    (folder / "report" / "cora.json").write_text(json.dumps(portrait()))
    return folder


def test_a_read_only_folder_is_one_line(
    undisturbed: Path,
    results: Path,
    small_disk: tuple[Path, Remount],
    capfd: pytest.CaptureFixture[str],
) -> None:
    disk, remount = small_disk
    remount("size=1m,ro")
    for words in (
        train_arguments(undisturbed, *QUICK, "--out", disk / "run"),
        ["predict", str(undisturbed / "run"), "--out", str(disk / "p.csv")],
        ["report", "--results", str(results), "--markdown", str(disk / "pages")],
        ["reproduce", "table1", "--quick", "--quiet", "--results", str(disk / "rows")],
    ):
        assert main(words) == 2, words
        said = one_line(capfd.readouterr().err)
        assert "read-only" in said or "cannot" in said, said
    assert list(disk.iterdir()) == []


def test_a_full_disk_tears_no_row(results: Path, small_disk: tuple[Path, Remount]) -> None:
    """Rows are appended until there is no room; those that were reported as written are there."""
    from conjoint.errors import StorageError
    from conjoint.experiments.rows import cut_torn_lines

    disk, remount = small_disk
    remount("size=16k")
    written = []
    with pytest.raises(StorageError, match="no space left"):
        for spec in specs(100):
            append_row(disk, made_up(spec))
            written.append(spec.key)
    assert [row["key"] for row in read_rows(disk)] == written and len(written) > 3
    cut_torn_lines(disk)
    remount("size=1m")
    append_row(disk, made_up(specs(100)[-1]))
    assert len(read_rows(disk)) == len(written) + 1


@pytest.mark.parametrize("victim", ["edges.csv", "nodes.csv"])
def test_a_file_that_vanishes_while_it_is_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], victim: str
) -> None:
    write_own_files(tmp_path)
    read = Path.read_bytes

    def vanish(path: Path) -> bytes:
        if path.name == victim:
            os.unlink(path)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", vanish)
    assert main(train_arguments(tmp_path, *QUICK, "--out", tmp_path / "run")) == 2
    assert f"{victim} does not exist" in one_line(capfd.readouterr().err)
    assert not (tmp_path / "run").exists()


def test_a_run_whose_weights_vanish_is_one_line(
    undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import shutil

    run = Path(shutil.copytree(undisturbed / "run", tmp_path / "run"))
    (run / "weights.safetensors").unlink()
    assert main(["predict", str(run)]) == 2
    assert "weights.safetensors: no such file" in one_line(capfd.readouterr().err)


@pytest.mark.parametrize("jump", [-10 * 365 * 86400.0, 10 * 365 * 86400.0])
def test_a_clock_that_jumps_changes_nothing(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    import time

    wall, calls = time.time, 0

    def jumping() -> float:
        nonlocal calls
        calls += 1
        return wall() + jump * calls

    monkeypatch.setattr(time, "time", jumping)
    (tmp_path / ".run.x.starting").mkdir()  # as a killed process leaves it: the clock decides on its age
    assert main(train_arguments(undisturbed, *QUICK, "--out", tmp_path / "run")) == 0
    assert bits(tmp_path / "run") == bits(undisturbed / "run") and calls
