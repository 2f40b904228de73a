"""The changes that `scripts/mutants.py` makes, and that tests notice them."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
SPEC = spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
assert SPEC is not None and SPEC.loader is not None
mutants = sys.modules["mutants"] = module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)
mutations = sys.modules["mutations"]

SOURCE = '''
"""A module."""
LIMIT: Literal[3] = 3
RULES = {"half": lambda x: x / 2, "odd": True}


def total(values, weights, shift=-1.0):
    """A function."""
    assert len(values) == len(weights)
    out = 0
    for value, weight in zip(values, weights, strict=True):
        if not value or (weight < LIMIT and value in (1, 2)):
            continue
        out += value * weight
    values.clear()
    return max(out, shift) if out else None
'''
KINDS = {
    "arithmetic",
    "and/or",
    "arguments",
    "comparison",
    "condition",
    "constant",
    "return",
    "sign",
    "statement",
}
# A comparison of the rule that keeps the lowest validation loss; a number of seconds that nothing reads.
TRY = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, "scripts")
import mutants
made = [m for m in mutants.all_mutants().values() if m.module == "training/stopping.py"]
[lower] = [m for m in made if m.function == "_val_loss" and m.kind == "comparison"]
tests = ["tests/training/test_stopping.py"]
with tempfile.TemporaryDirectory() as folder:
    workshop = mutants.Workshop(Path(folder))
    print(workshop.outcome(lower, tests, 120), workshop.tests(tests, 120), workshop.tests(tests, 0.0))
"""
# The same comparison, put into the function in forks of a process that has collected the tests; and a change
# that is made while the module is imported, which no fork can see.
IN_PROCESS = """
import sys
sys.path[:0] = ["scripts", "src", "tests", "."]
import mutants, pytest
made = [m for m in mutants.all_mutants().values() if m.module == "training/stopping.py"]
[lower] = [m for m in made if m.function == "_val_loss" and m.kind == "comparison"]
outside = next(m for m in made if m.function in (mutants.OUTSIDE, "Seen"))
def work(bench):
    tests = list(bench.items)
    print("ended", *bench.outcome(lower, tests, 60.0), bench.outcome(outside, tests, 60.0)[0])
    print("ended", *bench.fork(tests, 60.0))
pytest.main([*mutants.PYTEST, "tests/training/test_stopping.py"], plugins=[mutants.Bench(work)])
"""


def test_every_kind_of_change_is_made_and_each_is_another_module() -> None:
    found = mutations.mutants_of("m.py", SOURCE)
    assert {one.kind for one in found} == KINDS
    made = [ast.unparse(mutants.mutated(one, SOURCE)) for one in found]
    assert len(set(made)) == len(made) and ast.unparse(ast.parse(SOURCE)) not in made
    for one, text in zip(found, made, strict=True):
        compile(text, "m.py", "exec")
        assert one.function in ("total", mutants.OUTSIDE)
    assert not any("assert" in one.within or "Literal[4]" in one.after for one in found)
    assert all("strict=True" in text and '"""A function."""' in text for text in made)


def test_numbers_of_constants_in_capitals_are_settings() -> None:
    finder = mutations.Finder("m.py")
    finder.visit(ast.parse(SOURCE))
    assert finder.settings == ["m.py: LIMIT: Literal[3]"]
    in_constants = {one.before for one in finder.found if one.within.startswith("RULES")}
    assert in_constants == {
        "x / 2",
        "2",
        "True",
        next(one for one in in_constants if one.startswith("RULES")),
    }


def test_what_no_test_can_see_is_not_made() -> None:
    source = "def f(a, b):\n    return max(a, b), np.maximum(a, b), f(a, a)\n"
    source += "def g():\n    raise NotImplementedError\n"
    assert {one.kind for one in mutations.mutants_of("m.py", source)} == {"return"}


def test_a_changed_rule_is_noticed_and_the_original_passes() -> None:
    done = run(TRY)
    assert done.stdout.split()[-3:] == ["killed", "survived", "timeout"], done.stderr


def test_a_function_is_changed_in_forks_and_the_test_that_notices_is_named() -> None:
    done = run(IN_PROCESS)
    first, second = (line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ended"))
    assert (first[0], first[2], second) == ("killed", "outside", ["survived"]), done.stderr
    assert first[1].startswith("tests/training/test_stopping.py::test_")


def test_a_first_row_that_is_undecided_is_decided_by_the_copy_on_the_disk_alone(tmp_path: Path) -> None:
    """Not by a later try, which may have had tests that were written since."""
    path, undecided = tmp_path / "rows.jsonl", mutants.UNDECIDED
    found = {
        "killed": [("killed", "a test"), ("survived", "")],
        "survived": [("survived", ""), (undecided, ""), ("killed", "")],
        "decided": [(undecided, ""), ("killed", ""), ("survived", "")],
        "stopped": [(undecided, ""), ("killed", "a new test")],
        "stopped twice": [(undecided, ""), (undecided, ""), ("killed", "")],
    }
    rows = [{"key": key, "outcome": one, "by": by} for key, tries in found.items() for one, by in tries]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    first = {row["key"]: row["outcome"] for row in mutants.read_rows(path, first=True)}
    assert list(first.values()) == ["killed", "survived", "killed", undecided, undecided]
    last = {row["key"]: row["outcome"] for row in mutants.read_rows(path)}
    assert list(last.values()) == ["survived", "killed", "survived", "killed", "killed"]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
