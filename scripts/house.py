"""Measure how the code is laid out, and how often one command does what it should do once.

    python scripts/house.py                      this checkout
    python scripts/house.py --src OTHER/src      another one, with this environment
    python scripts/house.py --json               the same with every caller; --static leaves the commands out

The order of packages is `ORDER` in tests/imports.py. What commands do is counted in processes of their own:
functions are found by their names (`NAMES`) in whatever module has them, sorts and hashes by what is called.
"""

import argparse
import collections
import functools
import hashlib
import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from imports import (  # noqa: E402
    against_the_order,
    all_cycles,
    imports_of,
    inside_functions,
    modules_of,
    without_a_place,
)

# What is counted -> names of a function or method that does it, which may be led by its module or class. The
# first name that there is speaks for all: give the one that computes before the ones that ask for it.
NAMES = {
    "splits made": ("named_split", "make_split"),
    "trust fits": ("decoys.compare",),
    "trainings": ("train_epochs", "fit"),
    "predictions of all nodes": ("predict_proba",),
    "calls of adjacency": ("adjacency",),
    "transposes": ("Adjacency.transposed",),
    "calls of tidy_edges": ("tidy_edges",),
}
EPOCHS = "3"
SORTS = ("sort", "argsort", "unique", "lexsort", "msort")
INTEGERS = ("int32", "int64", "uint32", "uint64")
Counts = collections.Counter[str]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the folder that holds the package")
    parser.add_argument("--seeds", default="3", help="of the command that is watched; default 3")
    parser.add_argument("--static", action="store_true", help="only what can be read from the files")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--watch", choices=("counts", "hops"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        print(json.dumps({"counts": count_work, "hops": count_hops}[options.watch](options.seeds)))
        return 0
    found = static(options.src.resolve() / "conjoint")
    if not options.static:
        found |= {name: watched(name, options) for name in ("counts", "hops")}
    print(json.dumps(found, indent=1) if options.json else table(found))
    return 0


def static(source: Path) -> dict[str, Any]:
    files = sorted(source.rglob("*.py"))
    imports = imports_of(source)
    against = {f"{a} -> {b}": len(where) for (a, b), where in against_the_order(imports).items()}
    return {
        "lines": sum(file.read_bytes().count(b"\n") for file in files),
        "files": len(files),
        "imports inside functions": inside_functions(source),
        "against the order": against,
        "cycles": [sorted(cycle) for cycle in all_cycles(imports)],
        "packages without a place": sorted(without_a_place(source)),
    }


def watched(what: str, options: argparse.Namespace) -> Any:
    command = [sys.executable, __file__, "--watch", what, "--seeds", options.seeds]
    path = os.pathsep.join([str(options.src.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def table(found: dict[str, Any]) -> str:
    rows = [
        ("Python under src", f"{found['lines']} lines, {found['files']} files"),
        ("imports inside functions", str(found["imports inside functions"])),
        ("edges of packages against the order", _list(found["against the order"])),
        ("cycles", _list(" <-> ".join(cycle) for cycle in found["cycles"])),
        ("packages without a place in the order", _list(found["packages without a place"])),
    ]
    if "counts" in found:
        counts = found["counts"]
        rows.append((f"watched: `conjoint {' '.join(counts['command'])}`", ""))
        rows += [(name, str(number)) for name, number in counts["totals"].items()]
        hops = found["hops"]
        rows.append((f"watched: `conjoint {' '.join(hops['command'])}`", ""))
        rows += [(name, str(number)) for name, number in hops["totals"].items()]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _list(names: Any) -> str:
    names = list(names)
    return f"{len(names)} ({', '.join(names)})" if names else "0"


# ---- what follows runs in a process of its own


def count_work(seeds: str) -> dict[str, Any]:
    """A default training on the embedded Cora: how often the same things were done, and by whom."""
    import torch

    conjoint = importlib.import_module("conjoint")
    data = conjoint.load("cora", source="embedded")
    entries, nodes = int(data.edge_index.size(1)), int(data.num_nodes)
    counts: dict[str, Counts] = collections.defaultdict(collections.Counter)
    modules = list(all_modules())
    known = {
        what: next((name for name in names if wrap_everywhere(modules, name, counts[what])), None)
        for what, names in NAMES.items()
    }
    # Edges once, both ways, with loops, with decoys; features have far more entries than that.
    sizes = range(entries // 2, 2 * (entries + nodes))
    watch_hashes(modules, entries * 8, counts["hashes of the graph"])
    watch_scipy(sizes, counts["conversions of edges by SciPy"])
    sorts = counts["sorts of edges"]
    with tempfile.TemporaryDirectory() as folder, torch_sorts(sizes, sorts, torch):
        sys.setprofile(functools.partial(numpy_sorts, sizes, sorts))
        command = ["train", "--seeds", seeds, "--epochs", EPOCHS, "--quiet"]
        run_command([*command, "--out", f"{folder}/run"])
        sys.setprofile(None)
    watched = ("sorts of edges", "conversions of edges by SciPy", "hashes of the graph")
    totals: dict[str, int | str] = {name: counts[name].total() for name in watched}
    for what, name in known.items():  # a name that nobody has is told, not taken for zero
        totals[what] = counts[what].total() if name else f"none of {', '.join(NAMES[what])}"
    return {
        "command": command,
        "totals": totals,
        "callers": {name: dict(c) for name, c in counts.items() if c},
    }


def all_modules() -> Iterator[ModuleType]:
    """Every module of the package, imported: functions are wrapped before anybody else has them."""
    for name in modules_of(Path(next(iter(importlib.import_module("conjoint").__path__)))):
        if not name.endswith("__main__"):
            yield importlib.import_module(f"conjoint.{name}".rstrip("."))


def wrap_everywhere(modules: list[ModuleType], name: str, counter: Counts) -> bool:
    """Put a counting function in the place of every function or method of this name; whether there is any."""
    lead, _, last = name.rpartition(".")
    wrapped: dict[int, Callable[..., Any]] = {}
    made = set[int]()
    for module in modules:
        for place in [module, *(v for v in vars(module).values() if isinstance(v, type))]:
            held = vars(place).get(last)
            function: Any = getattr(held, "func", held)  # a cached property counts when it computes
            home = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
            mine = hasattr(function, "__code__") and home.startswith("conjoint.")
            if not mine or not home.endswith(f".{name}") or (lead == "" and isinstance(place, type)):
                continue
            if id(function) in made:  # a class that stands in several modules
                continue
            if id(function) not in wrapped:
                wrapped[id(function)] = counting(function, counter)
                made.add(id(wrapped[id(function)]))
            new = wrapped[id(function)]
            if function is held:
                setattr(place, last, new)
            else:
                held.func = new  # type: ignore[union-attr]
    return bool(wrapped)


def counting(function: Callable[..., Any], counter: Counts) -> Callable[..., Any]:
    @functools.wraps(function)
    def counted(*args: Any, **options: Any) -> Any:
        counter[caller(sys._getframe(1))] += 1
        return function(*args, **options)

    return counted


def caller(frame: FrameType | None) -> str:
    """The nearest function of the package on the way up."""
    while frame is not None:
        if (name := package_of(frame.f_code)) is not None:
            return f"{name}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "outside"


@functools.cache
def package_of(code: CodeType) -> str | None:
    """The module of the package that the code is in, without the package's name."""
    head, found, tail = code.co_filename.rpartition(f"{os.sep}conjoint{os.sep}")
    return tail.removesuffix(".py").replace(os.sep, ".") if found and head.endswith("src") else None


def watch_hashes(modules: list[ModuleType], enough: int, counter: Counts) -> None:
    """SHA-256 sums that took in this many bytes or more, on behalf of a function called fingerprint."""
    sha256 = hashlib.sha256

    class Watched:
        def __init__(self, content: Any = b"") -> None:
            self.sum, self.taken = sha256(), 0
            self.update(content)

        def update(self, content: Any) -> None:
            self.sum.update(content)
            before, self.taken = self.taken, self.taken + memoryview(content).nbytes
            if before < enough <= self.taken and for_a_fingerprint(sys._getframe(1)):
                counter[caller(sys._getframe(1))] += 1

        def __getattr__(self, name: str) -> Any:
            return getattr(self.sum, name)

    vars(hashlib)["sha256"] = Watched
    for module in modules:
        if vars(module).get("sha256") is sha256:
            vars(module)["sha256"] = Watched


def for_a_fingerprint(frame: FrameType | None) -> bool:
    while frame is not None:
        name = frame.f_code.co_name
        if "fingerprint" in name and "split" not in name and package_of(frame.f_code) is not None:
            return True
        frame = frame.f_back
    return False


def watch_scipy(sizes: range, counter: Counts) -> None:
    """Conversions between orders of a sparse matrix, which sort it."""
    import scipy.sparse as sp

    for kind in (sp.coo_matrix, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array):
        for name in ("tocsr", "tocsc", "sort_indices"):
            if hasattr(kind, name) and name != f"to{kind.__name__[:3]}":
                setattr(kind, name, sized(getattr(kind, name), sizes, counter))


def sized(function: Callable[..., Any], sizes: range, counter: Counts) -> Callable[..., Any]:
    inside = False  # one conversion may call another

    @functools.wraps(function)
    def watched(matrix: Any, *args: Any, **options: Any) -> Any:
        nonlocal inside
        if matrix.nnz in sizes and not inside:
            counter[f"{caller(sys._getframe(1))}: {function.__name__}"] += 1
        before, inside = inside, True
        try:
            return function(matrix, *args, **options)
        finally:
            inside = before

    return watched


def torch_sorts(sizes: range, counter: Counts, torch: Any) -> Any:
    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            if name in SORTS and args[0].numel() in sizes and not args[0].is_floating_point():
                counter[f"{caller(sys._getframe(1))}: {name}"] += 1
            return function(*args, **(kwargs or {}))

    return Watch()


def numpy_sorts(sizes: range, counter: Counts, frame: FrameType, event: str, called: Any) -> None:
    """Called by the interpreter for every call: methods of arrays cannot be replaced."""
    if event == "c_call" and getattr(called, "__name__", "") in SORTS:
        array = getattr(called, "__self__", None)
        if getattr(array, "size", None) in sizes and getattr(array, "dtype", None) in INTEGERS:
            counter[f"{caller(frame)}: {called.__name__}"] += 1


def count_hops(_: str) -> dict[str, Any]:
    """A small training from CSV: how many functions one meets, in how many places, and how deep they lie."""
    order: dict[CodeType, str] = {}
    depth = deepest = 0
    path: list[str] = []

    def watch(frame: FrameType, event: str, called: Any) -> None:
        nonlocal depth, deepest, path
        if event not in ("call", "return") or (name := package_of(frame.f_code)) is None:
            return
        depth += 1 if event == "call" else -1
        if event == "call" and frame.f_code.co_name not in (
            "<module>",
            "<genexpr>",
            "<lambda>",
            "<listcomp>",
        ):
            order.setdefault(frame.f_code, name)
            if depth > deepest:
                deepest, path = depth, stack(frame)

    command = ["train", "--model", "cat-i-mf", "--epochs", "1", "--seed", "0", "--no-plots", "--quiet"]
    main = importlib.import_module("conjoint.cli").main
    with tempfile.TemporaryDirectory() as folder:
        files = write_small_graph(Path(folder))
        sys.setprofile(watch)
        run_command([*command, *files, "--out", f"{folder}/run"], main)
        sys.setprofile(None)
    names = list(order.values())
    packages = [name.partition(".")[0] for name in names]
    totals = {
        "functions met": len(order),
        "files they are in": len(set(names)),
        "changes of package, in the order of meeting": sum(a != b for a, b in itertools.pairwise(packages)),
        "most functions on the way to one": deepest,
    }
    return {"command": [*command, "--edges", "E", "--nodes", "N"], "totals": totals, "deepest": path}


def stack(frame: FrameType | None) -> list[str]:
    found = []
    while frame is not None:
        if (name := package_of(frame.f_code)) is not None:
            found.append(f"{name}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


def write_small_graph(folder: Path) -> list[str]:
    """A ring of sixty nodes with three classes in turn."""
    ring = [f"{k},{(k + step) % 60}" for k in range(60) for step in (1, 3)]
    nodes = [f"{k},{'abc'[k % 3]},{(k * k) % 7},{k % 5}" for k in range(60)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *ring]) + "\n")
    (folder / "nodes.csv").write_text("\n".join(["id,label,size,age", *nodes]) + "\n")
    return ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv"), "--label", "label"]


def run_command(arguments: list[str], main: Callable[[list[str]], int] | None = None) -> None:
    """The command, with what it prints sent to stderr."""
    command = main or importlib.import_module("conjoint.cli").main
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        status = command(arguments)
    finally:
        sys.stdout = printed
    if status:
        raise SystemExit(f"conjoint {' '.join(arguments)} ended with {status}")


if __name__ == "__main__":
    raise SystemExit(main())
