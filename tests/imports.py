"""What the modules of the package import, read from their text, for test_order.py and scripts/house.py."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# An import may only go to the left, or stay where it is.
ORDER = (
    ("errors", "text", "defaults", "benchmark_files", "lock", "storage", "threads", "recording"),
    ("graph",),
    ("data",),
    ("kernels",),
    ("nn",),
    ("training",),
    ("selection",),
    ("evaluation",),
    ("experiments", "estimator", "cli"),
    ("learned",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
NAME = "conjoint"
FRONT = ("", "__main__")  # the package's own front door, which leads everywhere


@dataclass(frozen=True)
class Import:
    """`module` imports `target`, both without the name of the package."""

    module: str
    target: str

    @property
    def packages(self) -> tuple[str, str]:
        return self.module.partition(".")[0], self.target.partition(".")[0]


def modules_of(source: Path) -> dict[str, Path]:
    """Module -> file, for the package in `source` (src/conjoint)."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_of(source: Path) -> list[Import]:
    """Every import of one module of the package by another, be it inside a function or for types alone."""
    modules = modules_of(source)
    found = []
    for module, file in modules.items():
        for node, _ in _walk(ast.parse(file.read_bytes())):
            for name in _named(node, module, file.name == "__init__.py"):
                target = next((part for part in (name, name.rpartition(".")[0]) if part in modules), None)
                if target not in (None, module):
                    found.append(Import(module, str(target)))
    return found


def inside_functions(source: Path) -> int:
    """Import statements in functions, whatever they import."""
    trees = (ast.parse(file.read_bytes()) for file in source.rglob("*.py"))
    return sum(inside for tree in trees for _, inside in _walk(tree))


def _walk(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Import statements, and whether each is inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        else:
            yield from _walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def _named(node: ast.stmt, module: str, is_package: bool) -> Iterator[str]:
    """The full names that the statement binds, without the name of the package."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert isinstance(node, ast.ImportFrom)
        start = node.module or ""
        if node.level:
            here = [NAME, *filter(None, module.split("."))]
            up = here[: len(here) - node.level + is_package]
            start = ".".join([*up, *filter(None, [node.module])])
        names = [f"{start}.{alias.name}" for alias in node.names]
    for name in names:
        if name.startswith(f"{NAME}."):
            yield name.removeprefix(f"{NAME}.")


def without_a_place(source: Path) -> set[str]:
    """Packages and modules at the top that the order does not know."""
    return {module.partition(".")[0] for module in modules_of(source)} - RANK.keys() - set(FRONT)


def against_the_order(imports: Iterable[Import]) -> dict[tuple[str, str], list[Import]]:
    """(package, package that it imports) -> where, for every import that goes to the right."""
    found: dict[tuple[str, str], list[Import]] = {}
    for one in imports:
        package, target = one.packages
        if package in RANK and target in RANK and RANK[target] > RANK[package]:
            found.setdefault((package, target), []).append(one)
    return found


def cycles(edges: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Groups of names each of which reaches all others of its group."""
    after: dict[str, set[str]] = {}
    for start, end in edges:
        after.setdefault(start, set()).add(end)
        after.setdefault(end, set())
    reach = {name: _reached(name, after) for name in after}
    groups = {frozenset(b for b in reach[a] if a in reach[b]) | {a} for a in after}
    return [set(group) for group in sorted(groups, key=sorted) if len(group) > 1]


def _reached(start: str, after: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        new = after[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def all_cycles(imports: Iterable[Import]) -> list[set[str]]:
    """Of packages, and of modules inside a package."""
    inner = [one for one in imports if one.module not in FRONT and one.target not in FRONT]
    packages = [(start, end) for start, end in (one.packages for one in inner) if start != end]
    modules = [(one.module, one.target) for one in inner if one.packages[0] == one.packages[1]]
    return cycles(packages) + cycles(modules)
