"""The runner never repeats a finished run, and a killed one loses only what was in progress."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conjoint.errors import InputError
from conjoint.experiments.rows import read_rows, rows_file
from conjoint.experiments.runner import expected_seconds, missing, run
from conjoint.storage import locked
from fake_runs import NOTES, made_up, pretend, specs

TESTS = Path(__file__).resolve().parent.parent
PROGRAM = """
if __name__ == "__main__":
    import sys
    from pathlib import Path
    from conjoint.experiments.runner import run
    from fake_runs import pretend, specs
    run(specs(12), Path(sys.argv[1]), jobs=2, execute=pretend)
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "notes"
    path.write_text("")
    monkeypatch.setenv(NOTES, str(path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    return path


def test_what_is_there_is_not_done_again(tmp_path: Path, notes: Path) -> None:
    folder, some = tmp_path / "results", specs(3)
    seen: list[int] = []
    first = run(some[1:2], folder, execute=pretend, on_row=lambda spec, row: seen.append(spec.seed))
    rows = run(some, folder, execute=pretend, root="data", on_row=lambda spec, row: seen.append(spec.seed))
    assert seen == [1, 0, 2]
    assert [row["seed"] for row in rows] == [0, 1, 2]  # in the order asked for
    assert rows[1] == json.loads(json.dumps(first[0]))
    assert notes.read_text().split("\n")[:-1] == [
        line for seed in seen for line in (f"start {seed}", f"end {seed}")
    ]
    assert {row["threads"] for row in rows} == {"1"}
    assert rows[0]["root"] == "data"
    assert run(some, folder, execute=pretend) == read_rows_in_order(folder)
    assert notes.read_text().count("start") == 3


def read_rows_in_order(folder: Path) -> list[dict[str, object]]:
    return sorted(read_rows(folder), key=lambda row: row["seed"])


def test_isolated_runs_have_a_process_each(tmp_path: Path, notes: Path) -> None:
    rows = run(specs(2), tmp_path / "results", execute=pretend, isolated=True)
    assert len({row["pid"] for row in rows}) == 2


def test_a_killed_run_loses_only_what_was_in_progress(tmp_path: Path, notes: Path) -> None:
    folder, program = tmp_path / "results", tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, str(program), str(folder)])
    _until(lambda: len(read_rows(folder)) >= 4)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _until(lambda: _at_rest(notes))
    kept = {row["seed"] for row in read_rows(folder)}
    started = [line for line in notes.read_text().splitlines() if line.startswith("start")]
    assert 4 <= len(kept) < 12
    assert len(started) - len(kept) <= 2  # jobs=2: at most two were under way

    before = rows_file(folder, "cora").read_bytes()
    run(specs(12), folder, jobs=2, execute=pretend)
    after = rows_file(folder, "cora").read_bytes()
    assert after.startswith(before)  # nothing finished was touched or repeated
    assert sorted(row["seed"] for row in read_rows(folder)) == list(range(12))
    again = [line for line in notes.read_text().splitlines() if line.startswith("start")][len(started) :]
    assert {int(line.split()[1]) for line in again} == set(range(12)) - kept


def _until(true: object, seconds: float = 60) -> None:
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def _at_rest(notes: Path) -> bool:
    """No orphan goes on working: half a second passes without a new line."""
    before = notes.read_text()
    time.sleep(0.5)
    return notes.read_text() == before


def test_two_runners_do_not_share_a_folder(tmp_path: Path, notes: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match="another process"):
        run(specs(1), tmp_path, execute=pretend)


def test_missing_are_those_without_a_row() -> None:
    some = specs(3)
    assert missing(some, [made_up(some[1])]) == [some[0], some[2]]


def test_time_is_expected_from_the_most_similar_rows() -> None:
    [gat], [gcn] = specs(1), specs(1, "gcn")
    rows = [made_up(gat, seconds=4.0), made_up(gcn, seconds=10.0), made_up(gcn, seconds=30.0)]
    assert expected_seconds(gat, rows) == 4.0
    assert expected_seconds(gcn, rows) == 20.0
    assert expected_seconds(specs(1, "sgc")[0], rows) == 10.0
    assert expected_seconds(gat, []) is None
