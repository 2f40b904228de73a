"""Do the tests notice when the code is wrong? One small change at a time, and the tests that reach it.

    python scripts/mutants.py --reach                 which test enters which function (some minutes, once)
    python scripts/mutants.py --reach tests/nn/test_cat.py   the same for files that were changed (seconds)
    python scripts/mutants.py --sample 150 --seed 7   try a fresh sample; go on with one that was stopped
    python scripts/mutants.py --again                 those that survived, after tests were added
    python scripts/mutants.py --practise 500          where are tests missing? by mutants that no sample has
    python scripts/mutants.py --practise 0 --again    those of them that survived, after tests were added
    python scripts/mutants.py --summary               the score, into results/mutants/score.json; who survived

There are two scores. The last sample when it was drawn (`percent_first` in score.json) says what a mutant
meets for which no test was written. Tests are then written for its survivors: all that were drawn, after that
(`counts` and `percent_now`), are the usual mutation score, of which we want 95 %; it flatters.
A sample is drawn among mutants that no sample had before and that were not looked at while tests were written
(practised.txt).

A mutant is a copy of the package in which one operator, constant, condition, argument order, return value or
statement is another. Not drawn, but counted in score.json: numbers of a module's constants in capitals, which
are settings (`is_setting`). A mutant is killed if one of the tests that enter the changed function fails (for
a change outside of functions: that enter any function of the module), quickest first, or hangs. A survivor
needs a test, or an entry in results/mutants/survivors.toml: `equivalent` if no test could tell it from the
original, `limit` if it moves an estimate or a tolerance that nothing promises, `processes` if only processes
that train together could tell, `open`. All count as not killed; the score is given with equivalents and
without.

A change inside of a function is tried in a fork of one process that has collected all tests: it puts the
changed code into the function and runs the tests, which takes no import and no collection. Whoever survives
that, and a change that is made while the module is imported, is tried with a changed copy of the package on
the disk (`Workshop`), which processes that tests start read too. A test that kills must pass on the original
(`Bench.sound`). Time is counted in seconds of the processor: others may be using the machine.
"""

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from mutations import (
    OUTSIDE,
    PACKAGE,
    Mutant,
    all_mutants,
    changed_function,
    modules,
    mutated,
    place_of,
    settings,
)

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "results" / "mutants"
ROWS, REASONS, SCORE = FOLDER / "rows.jsonl", FOLDER / "survivors.toml", FOLDER / "score.json"
PRACTISED = FOLDER / "practised.txt"  # mutants that were looked at while tests were written
REACH = ROOT / "build" / "reach.json"
PRACTICE = ROOT / "build" / "practice.jsonl"  # how those ended; not kept
TESTS = [
    "tests/nn", "tests/kernels", "tests/training", "tests/selection", "tests/experiments/test_stats.py",
    "tests/experiments/test_execute.py", "tests/experiments/test_runner.py", "tests/estimator",
    "tests/test_doors.py", "tests/golden", "tests/research",
]  # fmt: skip
WARM = [
    "torch", "torch_geometric.nn", "scipy.stats", "sklearn.linear_model", "polars", "hypothesis", "pytest",
]  # fmt: skip
# Tests that start processes of their own, where the map cannot look: they come last.
RANKS = ["tests/training/test_ranks.py"]
FORKED = {"training/ranks.py": RANKS, "training/batch_steps.py": RANKS, "training/loop.py": RANKS}
BUDGET = 30.0  # seconds that the tests of one mutant may take by the map; the slowest are left out
QUICK = 15.0  # the same where survivors are tried again
# Libraries that are imported already cannot be rewritten, and need not be.
PYTEST = [
    "-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
]  # fmt: skip
UNDECIDED = "undecided"  # survived the tests of this process, or cannot be tried in it


class Reach:
    """A pytest plugin: which functions of the package each passed test enters, and how long it takes."""

    def __init__(self, known: dict[str, dict[str, Any]]) -> None:
        self.package, self.tests, self.entered = str(PACKAGE) + os.sep, known, set[CodeType]()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith(self.package):
            self.entered.add(frame.f_code)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.entered = set()
        sys.settrace(self._enter)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = {"seconds": round(report.duration, 3)}

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        if nodeid in self.tests:
            names = (f"{code.co_filename.removeprefix(self.package)}:{_name(code)}" for code in self.entered)
            self.tests[nodeid]["enters"] = sorted(set(names))

    def pytest_sessionfinish(self) -> None:
        REACH.parent.mkdir(exist_ok=True)
        REACH.write_text(json.dumps(self.tests, indent=0) + "\n")


def _name(code: CodeType) -> str:
    return code.co_qualname.replace(".<locals>", "").split(".<")[0]


def _import_from(source: Path) -> None:
    """This process, and those that it starts, take the package from here."""
    sys.path[:0] = paths = [str(source), str(ROOT / "tests"), str(ROOT)]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def make_reach(tests: list[str]) -> None:
    """Of these tests, or of all; what was noted of others stays."""
    import pytest

    _import_from(ROOT / "src")
    known = json.loads(REACH.read_text()) if tests and REACH.exists() else {}
    known = {name: one for name, one in known.items() if not name.startswith(tuple(tests))}
    pytest.main(["-q", "-p", "no:cacheprovider", *(tests or TESTS)], plugins=[Reach(known)])


def tests_for(mutant: Mutant, reach: dict[str, Any], budget: float = BUDGET) -> list[str]:
    """The quickest and those that enter little else first, as far as the budget goes."""
    inside, start = f"{mutant.module}:{mutant.function}", f"{mutant.module}:"
    found = [name for name, one in reach.items() if inside in one["enters"]]
    if mutant.function == OUTSIDE or not found:
        found = [name for name, one in reach.items() if any(part.startswith(start) for part in one["enters"])]
    chosen = []
    for name in sorted(found, key=lambda name: (0.01 + reach[name]["seconds"]) * len(reach[name]["enters"])):
        budget -= reach[name]["seconds"]
        if budget <= 0:
            break
        chosen.append(name)
    return chosen + FORKED.get(mutant.module, [])


class Workshop:
    """A copy of the package, the tests beside it, and forks of this process that run them."""

    def __init__(self, folder: Path) -> None:
        self.package, self.time = folder / "src" / "conjoint", int(time.time())
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        _import_from(folder / "src")
        for name in WARM:
            importlib.import_module(name)

    def outcome(self, mutant: Mutant, tests: list[str], limit: float) -> str:
        path = self.package / mutant.module
        source = path.read_text()
        try:
            self._write(path, ast.unparse(mutated(mutant, source)))
            return self.tests(tests, limit)
        finally:
            self._write(path, source)

    def tests(self, tests: list[str], limit: float) -> str:
        """ "survived", or how they noticed."""
        import pytest

        return _in_fork(lambda: int(pytest.main([*PYTEST, *tests])), limit)

    def _write(self, path: Path, text: str) -> None:
        """A time of its own, so that no compiled file of another version is taken for this one's."""
        path.write_text(text)
        self.time += 1
        os.utime(path, (self.time, self.time))


def _in_fork(work: Callable[[], int], limit: float) -> str:
    """ "survived" if it returns 0 in so many seconds, "killed" or "timeout". What it starts ends with it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(nothing, handle)
            code = work()
        finally:
            os._exit(code)
    with suppress(OSError):  # it may have ended
        os.setpgid(child, child)
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return "timeout" if code == -signal.SIGXCPU else "killed" if code else "survived"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


class Bench:
    """All tests, collected once; every mutant gets a fork of this process. A pytest plugin.

    Tests are not run one after the other: `work` is called where that would be done.
    """

    def __init__(self, work: Callable[["Bench"], None]) -> None:
        self.work, self.items, self.failed = work, dict[str, Any](), False
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        self._sound: dict[str, bool] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        for name, _ in modules():
            if not name.endswith("__main__.py"):
                importlib.import_module(f"conjoint.{name.removesuffix('.py').replace('/', '.')}")
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename.startswith(str(PACKAGE) + os.sep):
                self.functions[place_of(one.__code__)].append(one)
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def outcome(self, mutant: Mutant, tests: list[str], seconds: float) -> tuple[str, str]:
        """How it ended, and the test that noticed; "outside" if the change is in no function."""
        changed = changed_function(mutant, PACKAGE / mutant.module)
        if changed is None or not self.functions[place_of(changed)]:
            return "outside", ""
        while tests:
            ended, noticed = self.fork(tests, seconds, changed)
            if ended != "killed" or self.sound(noticed):
                return ended, noticed
            tests = [name for name in tests if name != noticed]
        return "no test", ""

    def sound(self, name: str) -> bool:
        """Whether the test passes on the original."""
        if name and name not in self._sound:
            self._sound[name] = self.fork([name], 600.0)[0] == "survived"
        return self._sound.get(name, True)

    def fork(self, tests: list[str], seconds: float, changed: CodeType | None = None) -> tuple[str, str]:
        read, write = os.pipe()
        ended = _in_fork(lambda: self._run(tests, seconds, changed, write), 60.0 + 3.0 * seconds)
        os.close(write)
        noticed = os.read(read, 4096).decode()
        os.close(read)
        return ended, noticed

    def _run(self, tests: list[str], seconds: float, changed: CodeType | None, write: int) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 5))
        if changed is not None:
            for function in self.functions[place_of(changed)]:
                function.__code__ = changed
        items = [self.items[name] for name in tests if name in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                os.write(write, item.nodeid.encode())
                break
        return int(self.failed)


def drawn(number: int, seed: int) -> list[Mutant]:
    """The first ones, in an order of the seed's and each mutant's, that no other sample had."""
    every = all_mutants()
    known = {row["key"] for row in read_rows(first=True) if row["seed"] != seed}
    known |= set(PRACTISED.read_text().split())
    order = sorted(every.keys() - known, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())
    return [every[key] for key in order[:number]]


def try_mutants(sample: list[Mutant], seed: int, again: bool, path: Path = ROWS) -> None:
    """Append one row for every mutant that has none yet; `again`: also for survivors that have no reason."""
    reach, reasons = json.loads(REACH.read_text()), read_reasons()
    rows = {row["key"]: row for row in read_rows(path)}
    done = {key: row for key, row in rows.items() if row["outcome"] != UNDECIDED}
    todo = [(mutant, seed) for mutant in sample if mutant.key not in done]
    if again:
        known = reasons.keys() | {mutant.key for mutant, _ in todo}
        left = {key: row for key, row in rows.items() if alive(row) and key not in known}
        todo += [(mutant, left[key]["seed"]) for key, mutant in all_mutants().items() if key in left]
    with tempfile.TemporaryDirectory() as folder:
        fresh = [one for one in todo if one[0].key not in rows or again]
        missed = [one for one in todo if one not in fresh]  # of a sample that was stopped
        missed += _try_in_process(fresh, reach, Path(folder) / "missed.json", path) if fresh else []
        if not missed:
            return
        missed.sort(
            key=lambda one: changed_function(one[0], PACKAGE / one[0].module) is not None
        )  # import first
        workshop = Workshop(Path(folder))
        quickest = sorted(reach, key=lambda name: reach[name]["seconds"])[:50]
        if workshop.tests(quickest, 600) != "survived":
            raise SystemExit("the tests fail as they are; mend that, or make the map anew: --reach")
        for mutant, drawn_by in missed:
            tests, began = tests_for(mutant, reach), time.monotonic()
            limit = 60 + 12 * _seconds(tests, reach)
            outcome = workshop.outcome(mutant, tests, limit) if tests else "no test"
            _keep(mutant, drawn_by, outcome, "", len(tests), began, path)


Drawn = list[tuple[Mutant, int]]  # and the seed of its order


def practise(number: int, seed: int, again: bool) -> None:
    """So many mutants more, none of which is then drawn for a sample."""
    every, fresh = all_mutants(), drawn(number, -seed)  # an order that is no sample's
    with open(PRACTISED, "a") as file:
        file.writelines(f"{mutant.key}\n" for mutant in fresh)
    left = [every[row["key"]] for row in read_rows(PRACTICE) if row["key"] in every]
    try_mutants([*left, *fresh], seed, again, PRACTICE)


def _try_in_process(todo: Drawn, reach: dict[str, Any], answer: Path, rows: Path = ROWS) -> Drawn:
    """Append rows of mutants that were killed so; the others. In a fork: this process imports no package."""
    import pytest

    def work(bench: Bench) -> None:
        left = []
        for place, (mutant, drawn_by) in enumerate(todo):
            began, tests = time.monotonic(), tests_for(mutant, reach, QUICK)
            tests = [name for name in tests if name in bench.items]
            outcome, noticed = bench.outcome(mutant, tests, 20 + 4 * _seconds(tests, reach))
            if outcome not in ("killed", "timeout"):  # noted now: a sample that is stopped has not only kills
                outcome, noticed = UNDECIDED, ""
                left.append(place)
            _keep(mutant, drawn_by, outcome, noticed, len(tests), began, rows)
        answer.write_text(json.dumps(left))

    for name in WARM:
        importlib.import_module(name)
    child = os.fork()
    if child == 0:
        try:
            _import_from(ROOT / "src")
            files = sorted({name.partition("::")[0] for name in reach})
            pytest.main([*PYTEST, *files], plugins=[Bench(work)])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if not answer.exists():
        raise SystemExit("the tests cannot be collected, or the map is of another version: --reach")
    return [todo[place] for place in json.loads(answer.read_text())]


def _seconds(tests: list[str], reach: dict[str, Any]) -> float:
    return sum(reach[name]["seconds"] if name in reach else 40.0 for name in tests)


def _keep(
    mutant: Mutant, seed: int, outcome: str, noticed: str, tests: int, began: float, rows: Path = ROWS
) -> None:
    row = {"key": mutant.key, **asdict(mutant), "outcome": outcome, "tests": tests, "by": noticed}
    row |= {"seed": seed, "seconds": round(time.monotonic() - began, 1)}
    with open(rows, "a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{outcome:9} {told(row)}", flush=True)


def told(row: dict[str, Any]) -> str:
    return f"{row['module']}:{row['line']} {row['before']} -> {row['after']} in {row['within']}"


def read_rows(path: Path = ROWS, first: bool = False) -> list[dict[str, Any]]:
    """The last row of every mutant, or its first, in the order in which they were first tried.

    A first row that says undecided is followed by what the copy on the disk said (which names no test). If a
    fork's row follows instead, the mutant was tried again, maybe with new tests: it survived at first.
    """
    rows, later = dict[str, dict[str, Any]](), set[str]()
    for line in path.read_text().splitlines() if path.exists() else ():
        row = json.loads(line)
        key, before = row["key"], rows.get(row["key"])
        from_fork = row["outcome"] == UNDECIDED or bool(row.get("by"))
        if first and before is not None and (before["outcome"] != UNDECIDED or from_fork or key in later):
            later.add(key)
            continue
        rows[key] = row
    return list(rows.values())


def read_reasons() -> dict[str, dict[str, str]]:
    reasons: dict[str, dict[str, str]] = tomllib.loads(REASONS.read_text()) if REASONS.exists() else {}
    return reasons


def alive(row: dict[str, Any]) -> bool:
    return row["outcome"] in ("survived", "no test", UNDECIDED)


def summary() -> int:
    """The score of mutants whose statements are still there, and who survived. 1 if one has no reason."""
    there, reasons, constants = all_mutants(), read_reasons(), settings()
    rows = [row for row in read_rows() if row["key"] in there]
    survivors = [row for row in rows if alive(row)]
    kinds = {row["key"]: reasons.get(row["key"], {}).get("kind", "NO REASON GIVEN") for row in survivors}
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    samples: dict[str, Counter[str]] = defaultdict(Counter)
    first = {row["key"]: alive(row) for row in read_rows(first=True)}
    for row in sorted(rows, key=lambda row: row["seed"]):
        kind = kinds.get(row["key"], "killed")
        for package in (row["module"].split("/")[0], "all"):
            packages[package].update(("tried", kind))
        samples[str(row["seed"])].update(["tried", kind] + ["killed_first"] * (not first[row["key"]]))
    for counts in samples.values():
        judged = counts["tried"] - counts["equivalent"]
        for when in ("first", "now"):
            killed = counts["killed_first" if when == "first" else "killed"]
            counts[f"percent_{when}"] = round(100 * killed / judged, 1)  # type: ignore[assignment]
            counts[f"percent_{when}_of_all"] = round(100 * killed / counts["tried"], 1)  # type: ignore[assignment]
    made = {"of": len(there), "samples": samples, "counts": packages}
    made |= {"settings_not_drawn": {"numbers": constants.total(), "constants": dict(constants)}}
    SCORE.write_text(json.dumps(made, indent=1) + "\n")
    print(SCORE.read_text(), end="")
    for row in survivors:
        why = reasons.get(row["key"], {}).get("why", "")
        print(f"{row['key']} {told(row)}: {kinds[row['key']]} {why}")
    return int(any(kind == "NO REASON GIVEN" for kind in kinds.values()))


def main() -> int:
    whole = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=whole)
    parser.add_argument("--reach", nargs="*", metavar="TESTS", help="note what tests (all, or these) enter")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="try the first N mutants")
    parser.add_argument("--practise", type=int, metavar="N", help="try N mutants that no sample will have")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they are drawn")
    parser.add_argument("--again", action="store_true", help="those that survived before and have no reason")
    parser.add_argument("--summary", action="store_true", help="the score, and who survived")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: a fork has no threads of its own
    practice = options.practise is not None
    work = options.sample or options.again or practice
    if options.reach is not None or (work and not REACH.exists()):
        make_reach(options.reach or [])
    if practice:
        practise(options.practise, options.seed, options.again)
    elif work:
        try_mutants(drawn(options.sample, options.seed), options.seed, options.again)
    return summary() if options.summary or not (options.reach is not None or work) else 0


if __name__ == "__main__":
    raise SystemExit(main())
