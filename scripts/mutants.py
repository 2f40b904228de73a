"""Do the tests notice when the code is wrong? One small change at a time, and the tests that reach it.

    python scripts/mutants.py --reach                 which test enters which function (some minutes, once)
    python scripts/mutants.py --reach tests/nn/test_cat.py   the same for a file that was changed
    python scripts/mutants.py --sample 240 --seed 1   try a sample; done ones are not tried again
    python scripts/mutants.py --again                 those that survived, after tests were added
    python scripts/mutants.py --summary               the score, into results/mutants/score.json; who survived

The score that counts is that of the last sample when it was drawn (`percent_first` in score.json): tests are
then written for its survivors, so that of later rows (`percent_now`) flatters.

A mutant is a copy of the package in which one operator, constant, condition, argument order, return value or
statement is another. It is killed if one of the tests that enter the changed function fails (for a change
outside of functions: that enter any function of the module), quickest first, or hangs. A survivor needs a
test, or an entry in results/mutants/survivors.toml: `equivalent` if no test could tell it from the original,
`limit` if it moves a constant that is an estimate or a tolerance and that nothing promises, `processes` if
only processes that train together could tell. All count as not killed; the score leaves out equivalents.

The order in which mutants are drawn depends on the seed and on each mutant, not on how many there are: a
sample stays the same but for the statements that changed.

A change inside of a function is tried in a fork of one process that has collected all tests: it puts the
changed code into the function and runs the tests, which takes no import and no collection. Whoever survives
that, and a change that is made while the module is imported, is tried with a changed copy of the package on
the disk (`Workshop`), which processes that tests start read too. A test that kills must pass on the original
(`Bench.sound`). Time is counted in seconds of the processor: others may be using the machine.
"""

import argparse
import ast
import copy
import gc
import hashlib
import importlib
import inspect
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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "results" / "mutants"
ROWS, REASONS, SCORE = FOLDER / "rows.jsonl", FOLDER / "survivors.toml", FOLDER / "score.json"
PRACTISED = FOLDER / "practised.txt"  # mutants that were looked at while tests were written
REACH = ROOT / "build" / "reach.json"
MODULES = ("nn/**/*.py", "kernels/*.py", "training/*.py", "selection/*.py", "experiments/stats.py")
TESTS = (
    "tests/nn", "tests/kernels", "tests/training", "tests/selection", "tests/experiments/test_stats.py",
    "tests/experiments/test_execute.py", "tests/experiments/test_runner.py", "tests/estimator",
    "tests/test_doors.py", "tests/golden", "tests/research",
)  # fmt: skip
WARM = (
    "torch",
    "torch_geometric.nn",
    "scipy.stats",
    "sklearn.linear_model",
    "polars",
    "hypothesis",
    "pytest",
)
# Tests that start processes of their own, where the map cannot look: they come last.
RANKS = ["tests/training/test_ranks.py"]
FORKED = {"training/ranks.py": RANKS, "training/batch_steps.py": RANKS, "training/loop.py": RANKS}
BUDGET = 30.0  # seconds that the tests of one mutant may take by the map; the slowest are left out
QUICK = 10.0  # the same where survivors are tried again
# Libraries that are imported already cannot be rewritten, and need not be.
PYTEST = (
    "-x",
    "-q",
    "-s",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
OUTSIDE = "<module>"
UNDECIDED = "undecided"  # survived the tests of this process, or cannot be tried in it

COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# Functions of two arguments whose order means nothing.
IN_ANY_ORDER = ("max", "min", "maximum", "minimum", "equal", "array_equal", "logaddexp")


@dataclass(frozen=True)
class Mutant:
    module: str  # path below the package
    function: str  # qualified name; OUTSIDE of all functions
    line: int
    kind: str
    before: str
    after: str
    within: str  # the statement
    place: int  # among all changes of the module

    @property
    def key(self) -> str:
        """The same as long as this statement and its place in the function are."""
        parts = (self.module, self.function, self.kind, self.before, self.after, self.within)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Whatever may be put in the place of one node."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARE:
            other.ops[0] = COMPARE[type(op)]()
            yield "comparison", other
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            other.op = ARITHMETIC[type(op)]()
            yield "arithmetic", other
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            other.op = ARITHMETIC[type(op)]()
            yield "arithmetic", other
            yield "statement", ast.Pass()
        case ast.BoolOp(op=op):
            other.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", other
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign", other.operand
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", ast.Constant(value + 1 if value + 1 != value else 2 * value)
            yield "constant", ast.Constant(value - 1 if value - 1 != value else value / 2)
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(a, ast.Starred) for a in other.args):
            other.args = [second, first, *rest]
            name = ast.unparse(other.func).rpartition(".")[2]
            if name not in IN_ANY_ORDER and ast.unparse(other) != ast.unparse(node):
                yield "arguments", other
        case ast.IfExp():
            other.body, other.orelse = other.orelse, other.body
            yield "condition", other
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Expr(value=value) if not isinstance(value, ast.Constant):  # a docstring
            yield "statement", ast.Pass()
        case ast.Assign() | ast.Raise() | ast.Break() | ast.Continue() | ast.Delete():
            yield "statement", ast.Pass()


class Finder(ast.NodeTransformer):
    """Walks through a module and, where `place` is reached, makes that change. Else it only counts."""

    def __init__(self, module: str, place: int | None = None) -> None:
        self.module, self.place, self.found, self.names = module, place, list[Mutant](), list[str]()
        self.statement: ast.stmt | None = None
        self.settings = list[str]()  # one entry for each number of one

    def visit(self, node: ast.AST) -> Any:
        if _says_nothing(node):
            return node
        if _is_setting(node, self.names, self.statement):
            self.settings.append(f"{self.module}: {_text(self.statement)}")
            return node
        outer, inside = self.statement, isinstance(node, ast.FunctionDef | ast.ClassDef)
        if isinstance(node, ast.stmt):
            self.statement = node
        for kind, other in changes(node):
            where, place = ".".join(self.names) or OUTSIDE, len(self.found)
            texts = (_text(node), _text(other), _text(self.statement))
            self.found.append(Mutant(self.module, where, getattr(node, "lineno", 0), kind, *texts, place))
            if self.place == place:
                self.statement = outer
                return ast.copy_location(other, node)
        if inside:
            self.names.append(node.name)  # type: ignore[attr-defined]
        self._children(node)
        if inside:
            self.names.pop()
        self.statement = outer
        return node

    def _children(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(value, list):
                value[:] = [self.visit(part) if isinstance(part, ast.AST) else part for part in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))


def _text(node: ast.AST | None) -> str:
    return ast.unparse(node).splitlines()[0] if node is not None else ""


def _says_nothing(node: ast.AST) -> bool:
    """What no test can look at: assertions for the type checker, lengths that agree, bodies of nothing."""
    return (
        (isinstance(node, ast.Raise) and node.exc is not None and _text(node.exc) == "NotImplementedError")
        or isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)
        or (isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel", "maxsize"))
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    )


def _is_setting(node: ast.AST, names: list[str], statement: ast.stmt | None) -> bool:
    """A number of a module's constant in capitals: a default, a size of a buffer, an estimate.

    One unit more or less of it is another setting, not a fault that a test should pin. Numbers of functions
    in such a statement (lambdas) count as code.
    """
    number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    if not number or names or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    inside = (part for one in ast.walk(statement) if isinstance(one, ast.Lambda) for part in ast.walk(one))
    return ast.unparse(targets[0]).isupper() and node not in inside


def mutants_of(module: str, source: str) -> list[Mutant]:
    finder = Finder(module)
    finder.visit(ast.parse(source))
    return finder.found


def mutated(mutant: Mutant, source: str) -> str:
    return ast.unparse(
        ast.fix_missing_locations(Finder(mutant.module, mutant.place).visit(ast.parse(source)))
    )


def all_mutants() -> list[Mutant]:
    package = ROOT / "src" / "conjoint"
    paths = sorted(path for pattern in MODULES for path in package.glob(pattern))
    return [one for path in paths for one in mutants_of(str(path.relative_to(package)), path.read_text())]


class Reach:
    """A pytest plugin: which functions of the package each passed test enters, and how long it takes."""

    def __init__(self, package: Path, known: dict[str, dict[str, Any]]) -> None:
        self.package, self.tests = str(package) + os.sep, known
        self.entered: set[CodeType] = set()

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


def make_reach(tests: list[str]) -> None:
    """Of these tests, or of all; what was noted of others stays."""
    import pytest

    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)])
    known = json.loads(REACH.read_text()) if tests and REACH.exists() else {}
    known = {name: one for name, one in known.items() if not name.startswith(tuple(tests))}
    reach = Reach(ROOT / "src" / "conjoint", known)
    pytest.main(["-q", "-p", "no:cacheprovider", *(tests or TESTS)], plugins=[reach])


def tests_for(mutant: Mutant, reach: dict[str, Any], budget: float = BUDGET) -> list[str]:
    """The quickest first, as far as the budget goes."""
    inside = f"{mutant.module}:{mutant.function}"
    whole = mutant.function == OUTSIDE or not any(inside in one["enters"] for one in reach.values())

    def enters(names: list[str]) -> bool:
        return any(name.startswith(f"{mutant.module}:") if whole else name == inside for name in names)

    chosen, left = [], budget
    for name in sorted(reach, key=lambda name: reach[name]["seconds"]):
        left -= reach[name]["seconds"] if enters(reach[name]["enters"]) else 0.0
        if left > 0 and enters(reach[name]["enters"]):
            chosen.append(name)
    return chosen + FORKED.get(mutant.module, [])


class Workshop:
    """A copy of the package, the tests beside it, and forks of this process that run them."""

    def __init__(self, folder: Path) -> None:
        self.package, self.time = folder / "src" / "conjoint", int(time.time())
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        paths = [str(folder / "src"), str(ROOT / "tests"), str(ROOT)]
        os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        sys.path[:0] = paths
        for name in WARM:
            importlib.import_module(name)

    def outcome(self, mutant: Mutant, tests: list[str], limit: float) -> str:
        path = self.package / mutant.module
        source = path.read_text()
        try:
            self._write(path, mutated(mutant, source))
            return self.tests(tests, limit)
        finally:
            self._write(path, source)

    def tests(self, tests: list[str], limit: float) -> str:
        """ "survived", or how they noticed."""
        child = os.fork()
        if child == 0:
            _run_tests(tests)
        os.setpgid(child, child)  # whatever the tests start ends with them
        ended, status = _wait(child, limit)
        if not ended:
            return "timeout"
        return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"

    def _write(self, path: Path, text: str) -> None:
        """A time of its own, so that no compiled file of another version is taken for this one's."""
        path.write_text(text)
        self.time += 1
        os.utime(path, (self.time, self.time))


def _wait(child: int, limit: float) -> tuple[bool, int]:
    """Whether a process that leads its group has ended by itself, and how."""
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return True, status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    return False, os.waitpid(child, 0)[1]


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nothing, handle)


def _run_tests(tests: list[str]) -> None:
    """In a fork: never returns."""
    import pytest

    _silence()
    code = 1
    try:
        code = int(pytest.main([*PYTEST, *tests]))
    finally:
        os._exit(code)


Drawn = list[tuple[Mutant, int]]  # and the seed of its order


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
        package = str(ROOT / "src" / "conjoint") + os.sep
        for path in (path for pattern in MODULES for path in (ROOT / "src" / "conjoint").glob(pattern)):
            if path.name != "__main__.py":
                importlib.import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename.startswith(package):
                self.functions[place_of(one.__code__)].append(one)
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def outcome(self, mutant: Mutant, tests: list[str], seconds: float) -> tuple[str, str]:
        """How it ended, and the test that noticed; "outside" if the change is in no function."""
        path = ROOT / "src" / "conjoint" / mutant.module
        changed = changed_function(mutant, path)
        if changed is None or not self.functions[place_of(changed)]:
            return "outside", ""
        while tests:
            ended, noticed = self._fork(tests, seconds, changed)
            if ended != "killed" or self.sound(noticed):
                return ended, noticed
            tests = [name for name in tests if name != noticed]
        return "no test", ""

    def sound(self, name: str) -> bool:
        """Whether the test passes on the original."""
        if name and name not in self._sound:
            self._sound[name] = self._fork([name], 600.0)[0] == "survived"
        return self._sound.get(name, True)

    def _fork(self, tests: list[str], seconds: float, changed: CodeType | None = None) -> tuple[str, str]:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            self._run(tests, seconds, changed, write)
        os.close(write)
        ended, status = _wait(child, 60.0 + 20.0 * seconds)
        noticed = os.read(read, 4096).decode()
        os.close(read)
        if not ended or os.waitstatus_to_exitcode(status) == -signal.SIGXCPU:
            return "timeout", noticed
        return ("survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"), noticed

    def _run(self, tests: list[str], seconds: float, changed: CodeType | None, write: int) -> None:
        """In a fork: never returns."""
        code = 1
        try:
            _silence()
            resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 5))
            for function in self.functions[place_of(changed)] if changed is not None else ():
                assert changed is not None
                function.__code__ = changed
            items = [self.items[name] for name in tests if name in self.items]
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os.write(write, item.nodeid.encode())
                    break
            code = int(self.failed)
        finally:
            os._exit(code)


def place_of(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def changed_function(mutant: Mutant, path: Path) -> CodeType | None:
    """The code of the function that the mutant changes; None if more than one function's code changes."""
    source = path.read_text()
    tree = ast.fix_missing_locations(Finder(mutant.module, mutant.place).visit(ast.parse(source)))
    before, after = (list(_functions(compile(one, str(path), "exec"))) for one in (ast.parse(source), tree))
    if [place_of(code) for code in before] != [place_of(code) for code in after]:
        return None
    differ = [new for old, new in zip(before, after, strict=True) if _body(old) != _body(new)]
    old = {place_of(code): code for code in before}
    if len(differ) != 1 or not differ[0].co_flags & inspect.CO_OPTIMIZED:
        return None
    return differ[0] if old[place_of(differ[0])].co_freevars == differ[0].co_freevars else None


def _functions(code: CodeType) -> Iterator[CodeType]:
    """A module's and its classes' own code, and that of the functions in them, outermost."""
    yield code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        for part in code.co_consts:
            if isinstance(part, CodeType):
                yield from _functions(part)


def _body(code: CodeType) -> CodeType:
    """To compare: of a module or class without what is defined in it, of a function all."""
    if code.co_flags & inspect.CO_OPTIMIZED:
        return code
    parts = [place_of(part) if isinstance(part, CodeType) else part for part in code.co_consts]
    return code.replace(co_consts=tuple(parts))


def drawn(number: int, seed: int) -> list[Mutant]:
    """The first ones in an order of the seed's; a change made twice in one statement counts once."""
    once = {mutant.key: mutant for mutant in reversed(all_mutants())}
    known = {row["key"] for row in read_rows() if row["seed"] != seed} | set(PRACTISED.read_text().split())
    order = sorted(once.keys() - known, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())
    return [once[key] for key in order[:number]]


def try_mutants(sample: list[Mutant], seed: int, again: bool) -> None:
    """Append one row for every mutant that has none yet; `again`: also for survivors that have no reason."""
    reach, reasons = json.loads(REACH.read_text()), read_reasons()
    done = {row["key"]: row for row in read_rows() if row["outcome"] != UNDECIDED}
    todo = [(mutant, seed) for mutant in sample if mutant.key not in done]
    if again:
        left = {key: row for key, row in done.items() if alive(row) and key not in reasons}
        todo += [(mutant, left.pop(mutant.key)["seed"]) for mutant in all_mutants() if mutant.key in left]
    with tempfile.TemporaryDirectory() as folder:
        missed = _try_in_process(todo, reach, Path(folder) / "missed.json")
        if not missed:
            return
        workshop = Workshop(Path(folder))
        quickest = sorted(reach, key=lambda name: reach[name]["seconds"])[:200]
        if workshop.tests(quickest, 600) != "survived":
            raise SystemExit("the tests fail as they are; mend that, or make the map anew: --reach")
        for mutant, drawn_by in missed:
            tests, began = tests_for(mutant, reach), time.monotonic()
            outcome = (
                workshop.outcome(mutant, tests, 60 + 20 * _seconds(tests, reach)) if tests else "no test"
            )
            _keep(mutant, drawn_by, outcome, "", len(tests), began)


def _try_in_process(todo: Drawn, reach: dict[str, Any], answer: Path) -> Drawn:
    """Append rows of mutants that were killed so; the others. In a fork: this process imports no package."""
    import pytest

    def work(bench: Bench) -> None:
        left = []
        for place, (mutant, drawn_by) in enumerate(todo):
            began, tests = time.monotonic(), tests_for(mutant, reach, QUICK)
            tests = [name for name in tests if name in bench.items]
            outcome, noticed = bench.outcome(mutant, tests, 20 + 4 * _seconds(tests, reach))
            if outcome in ("killed", "timeout"):
                _keep(mutant, drawn_by, outcome, noticed, len(tests), began)
            else:  # noted now: a sample that is stopped here would have only kills
                _keep(mutant, drawn_by, UNDECIDED, "", len(tests), began)
                left.append(place)
        answer.write_text(json.dumps(left))

    for name in WARM:
        importlib.import_module(name)
    os.environ["OMP_NUM_THREADS"] = "1"
    child = os.fork()
    if child == 0:
        try:
            sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
            os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
            pytest.main(
                [*PYTEST, *sorted({name.partition("::")[0] for name in reach})], plugins=[Bench(work)]
            )
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if not answer.exists():
        raise SystemExit("the tests cannot be collected, or the map is of another version: --reach")
    return [todo[place] for place in json.loads(answer.read_text())]


def _seconds(tests: list[str], reach: dict[str, Any]) -> float:
    return sum(reach[name]["seconds"] if name in reach else 40.0 for name in tests)


def _keep(mutant: Mutant, seed: int, outcome: str, noticed: str, tests: int, began: float) -> None:
    row = {"key": mutant.key, **asdict(mutant), "outcome": outcome, "tests": tests, "by": noticed}
    row |= {"seed": seed, "seconds": round(time.monotonic() - began, 1)}
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    with open(ROWS, "a") as file:
        file.write(json.dumps(row) + "\n")
    change = f"{mutant.before} -> {mutant.after} in {mutant.within}"
    print(f"{outcome:9} {mutant.module}:{mutant.line} {change}", flush=True)


def read_rows(first: bool = False) -> list[dict[str, Any]]:
    """The last row of every mutant, or its first, in the order in which they were first tried."""
    rows: dict[str, dict[str, Any]] = {}
    for line in ROWS.read_text().splitlines() if ROWS.exists() else ():
        row = json.loads(line)
        before = rows.get(row["key"])
        rows[row["key"]] = before if first and before and before["outcome"] != UNDECIDED else row
    return list(rows.values())


def samples(there: set[str], equivalent: set[str]) -> dict[str, dict[str, Any]]:
    """By seed: how many were killed when the sample was drawn, and how many now that tests were added."""
    found: dict[str, dict[str, Any]] = {}
    for when, rows in (("first", read_rows(first=True)), ("now", read_rows())):
        for row in sorted((row for row in rows if row["key"] in there), key=lambda row: row["seed"]):
            counts = found.setdefault(str(row["seed"]), {"tried": 0, "equivalent": 0, "first": 0, "now": 0})
            counts["tried"] += when == "now"
            counts["equivalent"] += when == "now" and row["key"] in equivalent and alive(row)
            counts[when] += not alive(row)
    for counts in found.values():
        judged = max(1, counts["tried"] - counts["equivalent"])
        counts |= {f"percent_{when}": round(100 * counts[when] / judged, 1) for when in ("first", "now")}
    return found


def read_reasons() -> dict[str, dict[str, str]]:
    reasons: dict[str, dict[str, str]] = tomllib.loads(REASONS.read_text()) if REASONS.exists() else {}
    return reasons


def alive(row: dict[str, Any]) -> bool:
    return row["outcome"] in ("survived", "no test", UNDECIDED)


def summary() -> int:
    """The score of mutants whose statements are still there, and who survived. 1 if one has no reason."""
    there = {mutant.key for mutant in all_mutants()}
    rows, reasons = [row for row in read_rows() if row["key"] in there], read_reasons()
    survivors = [row for row in rows if alive(row)]
    kinds = {row["key"]: reasons.get(row["key"], {}).get("kind", "NO REASON GIVEN") for row in survivors}
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for package in (row["module"].split("/")[0], "all"):
            packages[package].update(("tried", kinds.get(row["key"], "killed")))
    counts = {name: dict(sorted(packages[name].items())) for name in sorted(packages)}
    total = packages["all"]
    score = round(100 * total["killed"] / max(1, total["tried"] - total["equivalent"]), 1)
    equivalent = {key for key, kind in kinds.items() if kind == "equivalent"}
    found = {"of": len(there), "samples": samples(there, equivalent)}
    found |= {"killed_percent_without_equivalents": score, "counts": counts}
    SCORE.write_text(json.dumps(found, indent=1) + "\n")
    print(SCORE.read_text(), end="")
    for row in survivors:
        change = f"{row['before']} -> {row['after']} in {row['within']}"
        why = reasons.get(row["key"], {}).get("why", "")
        print(f"{row['key']} {row['module']}:{row['line']} {change}: {kinds[row['key']]} {why}")
    return int(any(kind == "NO REASON GIVEN" for kind in kinds.values()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--reach",
        nargs="*",
        metavar="TESTS",
        help="run tests once (all, or these files) and note what they enter",
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="try the first N mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they are drawn")
    parser.add_argument("--again", action="store_true", help="those that survived before and have no reason")
    parser.add_argument("--summary", action="store_true", help="the score, and who survived")
    options = parser.parse_args()
    os.chdir(ROOT)
    work = options.sample or options.again
    if options.reach is not None or (work and not REACH.exists()):
        make_reach(options.reach or [])
    if work:
        try_mutants(drawn(options.sample, options.seed), options.seed, options.again)
    return summary() if options.summary or not (options.reach is not None or work) else 0


if __name__ == "__main__":
    raise SystemExit(main())
