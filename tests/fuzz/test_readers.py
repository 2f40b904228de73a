"""The kept corpus, and a short, repeatable run over every reader; the long one: `python scripts/fuzz.py`."""

import random
import subprocess
from pathlib import Path

import pytest

from fuzz.campaign import CORPUS, corpus_file, load_corpus, run, try_one
from fuzz.guard import Violation, no_longer_than, nothing_but, scratch_folder
from fuzz.readers import READERS

INPUTS = 120


@pytest.mark.parametrize("name", READERS)
@pytest.mark.timeout(200)
def test_damaged_files_give_a_value_or_one_line(name: str) -> None:
    tally, _ = run(name, INPUTS, seed=2024)
    assert tally.inputs == INPUTS + len(READERS[name].seeds()) + len(load_corpus(name))
    assert tally.refusals and tally.values, "inputs must be damaged, yet not beyond reading"
    assert tally.grown_mib < 1000


@pytest.mark.parametrize("name", READERS)
def test_the_sound_samples_are_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    with scratch_folder() as folder:
        outcomes = [try_one(reader, raw, folder, random.Random(1)) for raw in reader.seeds()]
    assert None in outcomes, outcomes


def test_a_panic_of_a_library_is_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """polars prints pages about some damaged Parquet files of the corpus before it raises."""
    with scratch_folder() as folder:
        for raw in load_corpus("parquet"):
            try_one(READERS["parquet"], raw, folder, random.Random(0))
    assert capfd.readouterr().err == ""


def test_every_corpus_file_belongs_to_a_reader() -> None:
    assert {path.name for path in CORPUS.glob("*.txt")} <= {corpus_file(name).name for name in READERS}


def test_a_case_is_a_pure_function_of_its_numbers() -> None:
    (one, bred), (other, again) = run("csv", 60, 7), run("csv", 60, 7)
    assert (one.values, one.refusals, one.lines, bred) == (other.values, other.refusals, other.lines, again)


@pytest.mark.parametrize(
    "harm",
    [
        lambda: subprocess.run(["true"]),
        lambda: open("/etc/passwd").close(),
        lambda: __import__("pickle").loads(b"cos\ngetcwd\n."),
        lambda: __import__("socket").create_connection(("127.0.0.1", 9)),
    ],
)
def test_the_guard_sees_what_no_file_may_do(harm: object, tmp_path: Path) -> None:
    assert callable(harm)
    with pytest.raises(Violation), nothing_but(tmp_path):
        harm()


def test_the_guard_ends_what_takes_too_long() -> None:
    with pytest.raises(Violation, match="still busy"), no_longer_than(0.1):
        while True:
            pass
