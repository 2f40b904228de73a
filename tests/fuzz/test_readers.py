"""A short, repeatable run of the fuzz target; the long one is its command line."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.fuzz_readers import one_case, run


@pytest.fixture
def memory_bound() -> Iterator[None]:
    """A reader that asks for much more than the files hold fails here instead of taking the machine down."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + 4 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.timeout(120)
def test_damaged_files_give_a_graph_or_one_line(memory_bound: None) -> None:
    tried, graphs = run(seconds=60, seed=2024, most=400)
    assert tried == 400
    assert 0 < graphs < tried, "the corpus must be damaged, yet not beyond reading"


def test_a_case_is_a_pure_function_of_its_numbers(tmp_path: Path) -> None:
    assert [one_case(7, n, tmp_path) for n in range(20)] == [one_case(7, n, tmp_path) for n in range(20)]
