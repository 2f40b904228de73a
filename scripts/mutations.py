"""The small changes that `scripts/mutants.py` tries: which there are, and the code with one of them made.

One operator, constant, condition, argument order, return value or statement is another. Left out is what no
test can look at (`says_nothing`), and numbers of a module's constants in capitals, which are settings
(`is_setting`).
"""

import ast
import copy
import hashlib
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "conjoint"
MODULES = ("nn/**/*.py", "kernels/*.py", "training/*.py", "selection/*.py", "experiments/stats.py")
OUTSIDE = "<module>"
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
        if says_nothing(node):
            return node
        if is_setting(node, self.names, self.statement):
            self.settings.append(f"{self.module}: {_text(self.statement).partition('=')[0].strip()}")
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
        self.names += [node.name] if inside else []  # type: ignore[attr-defined]
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(value, list):
                value[:] = [self.visit(part) if isinstance(part, ast.AST) else part for part in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        del self.names[len(self.names) - inside :]
        self.statement = outer
        return node


def _text(node: ast.AST | None) -> str:
    return ast.unparse(node).splitlines()[0] if node is not None else ""


def says_nothing(node: ast.AST) -> bool:
    """What no test can look at: assertions for the type checker, lengths that agree, bodies of nothing."""
    return (
        isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)
        or (isinstance(node, ast.Raise) and _text(node.exc) == "NotImplementedError")
        or (isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel", "maxsize"))
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    )


def is_setting(node: ast.AST, names: list[str], statement: ast.stmt | None) -> bool:
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


def mutated(mutant: Mutant, source: str) -> ast.AST:
    made: ast.AST = Finder(mutant.module, mutant.place).visit(ast.parse(source))
    return ast.fix_missing_locations(made)


def modules() -> Iterator[tuple[str, str]]:
    """Path below the package, and source."""
    for path in sorted(path for pattern in MODULES for path in PACKAGE.glob(pattern)):
        yield str(path.relative_to(PACKAGE)), path.read_text()


def all_mutants() -> dict[str, Mutant]:
    """By key; a change made twice in one statement counts once."""
    made = [one for module, source in modules() for one in mutants_of(module, source)]
    return {mutant.key: mutant for mutant in reversed(made)}


def settings() -> Counter[str]:
    """Constants that are not changed, with how many numbers each has."""
    finders = [(Finder(module), source) for module, source in modules()]
    for finder, source in finders:
        finder.visit(ast.parse(source))
    return Counter(name for finder, _ in finders for name in finder.settings)


def place_of(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def changed_function(mutant: Mutant, path: Path) -> CodeType | None:
    """The code of the function that the mutant changes; None if more than one function's code changes."""
    source = path.read_text()
    trees: list[Any] = [ast.parse(source), mutated(mutant, source)]
    before, after = (list(_functions(compile(tree, str(path), "exec"))) for tree in trees)
    if [place_of(code) for code in before] != [place_of(code) for code in after]:
        return None
    differ = [(old, new) for old, new in zip(before, after, strict=True) if _body(old) != _body(new)]
    if len(differ) != 1 or not differ[0][1].co_flags & inspect.CO_OPTIMIZED:
        return None
    old, new = differ[0]
    return new if old.co_freevars == new.co_freevars else None


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
