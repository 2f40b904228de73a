"""Instructions of a fixed step of every layer, and of each kernel in it, as valgrind counts them: the same
number however busy the machine is.

    python -m benchmarks.instructions                  # compare with results/instructions.json
    python -m benchmarks.instructions --record         # write what was counted
    python -m benchmarks.instructions --record --why "aggregate: rows of 16 channels spill less often"

More than 2 % above the record is a failure. A record that rises by as much needs its reason, which is added
to results/instructions.txt: so a rise never lands without a line that says why. Counts belong to a compiler,
a processor and a version of torch and Python; elsewhere there is nothing to compare with.
"""

import argparse
import ctypes
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conjoint.graph.adjacency import adjacency
from conjoint.kernels.build import compiler
from conjoint.kernels.loading import found
from conjoint.nn.cat import CAT
from conjoint.nn.conjoint_layer import ConjointLayer
from conjoint.nn.interventions import MatrixFactorization
from conjoint.nn.random_propagation import RandomPropagation
from conjoint.nn.residual import ResidualCAT
from conjoint.storage import append_line, write_atomically

ROOT = Path(__file__).resolve().parent.parent
RECORD, REASONS = ROOT / "results" / "instructions.json", ROOT / "results" / "instructions.txt"
LIMIT = 1.02
NODES, EDGES, CLASSES = 600, 1500, 5
Step = Callable[[], None]
Counts = dict[str, int]

# Requests to valgrind are a few instructions of C, which do nothing outside of it.
MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; }
void start(void) { CALLGRIND_ZERO_STATS; }
void stop(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


def steps() -> Iterator[tuple[str, Step]]:
    """Forward and backward of a layer, or a network's step without its optimizer, by name."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, EDGES), generator=generator)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    graph, y = adjacency(edges, NODES), torch.arange(NODES) % CLASSES
    for width in (64, 256):
        x = torch.randn(NODES, width, generator=generator).requires_grad_()
        for scored in (False, True):
            scores = MatrixFactorization(NODES, CLASSES) if scored else None
            layer = ConjointLayer(width, width // 8, 8, dropout=0.6, intervention=scores)
            yield f"CATConv {width}{', mf' if scored else ''}", _backward(layer, x, edges)
    features = torch.rand(NODES, 300, generator=generator)
    sparse = features * (torch.rand(NODES, 300, generator=generator) < 0.02)
    for stored, x in (("sparse", sparse.to_sparse_csr()), ("dense", sparse), ("full", features)):
        model = CAT(300, 8, CLASSES, intervention=MatrixFactorization(NODES, CLASSES))
        yield f"CAT, {stored} features", _trained(model, x, graph, y)
    residual = ResidualCAT(300, 64, CLASSES, intervention=MatrixFactorization(NODES, CLASSES))
    yield "ResidualCAT", _trained(residual, features, graph, y)
    yield "RandomPropagation", _trained(RandomPropagation(300, 32, CLASSES), sparse.to_sparse_csr(), graph, y)


def _backward(layer: nn.Module, x: Tensor, edges: Tensor) -> Step:
    return lambda: layer(x, edges).sum().backward()


def _trained(model: nn.Module, x: Tensor, graph: object, y: Tensor) -> Step:
    return lambda: F.cross_entropy(model(x, graph), y).backward()


def run_steps(marks: str) -> None:
    """Inside valgrind: each step twice to warm up, then once between two marks."""
    library = ctypes.CDLL(marks)
    gc.disable()
    torch.manual_seed(0)
    library.begin()
    for name, step in steps():
        step(), step()
        library.start()
        step()
        library.stop(name.encode())


def missing() -> str | None:
    """Why nothing can be counted here, if so."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed (apt install valgrind)"
    if compiler() is None:
        return "there is no C compiler"
    return None if found()[0] is not None else found()[2]


def made_with() -> dict[str, str]:
    """What the counts depend on, beside the sources."""
    path = found()[1]
    made_by = re.search(rb"GCC: \([^\0]*|clang version [^\0]*", path.read_bytes() if path else b"")
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True)
    return {
        "compiler": made_by[0].decode() if made_by else "unknown",
        "valgrind": valgrind.stdout.strip(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": model[1].strip() if model else "unknown",
    }


def count() -> Counts:
    """Run this file under valgrind, with one thread and the kernels' build for AVX2, which valgrind knows."""
    with tempfile.TemporaryDirectory() as folder:
        source, marks, out = (Path(folder) / name for name in ("marks.c", "marks.so", "counts"))
        source.write_text(MARKS)
        command = [*(compiler() or ["cc"]), "-shared", "-fPIC", "-o", str(marks), str(source)]
        subprocess.run(command, check=True)
        quiet = ["--instr-atstart=no", "--dump-instr=no", "--dump-line=no", f"--callgrind-out-file={out}"]
        inside = [sys.executable, "-m", "benchmarks.instructions", "--inside", str(marks)]
        fixed = {
            "OMP_NUM_THREADS": "1",
            "ATEN_CPU_CAPABILITY": "avx2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(ROOT / "src"),
        }
        ran = subprocess.run(
            ["valgrind", "--tool=callgrind", *quiet, *inside],
            cwd=ROOT,
            env={**os.environ, **fixed},
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise RuntimeError(f"valgrind ended with {ran.returncode}: {ran.stderr[-2000:]}")
        counts: Counts = {}
        for dump in sorted(Path(folder).glob("counts.*")):
            counts.update(read_dump(dump.read_text()))
        return counts


def read_dump(text: str) -> Counts:
    """Instructions of a step, and in it of each function of the kernels, from callgrind's file of it."""
    step = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
    total = re.search(r"^(?:totals|summary): (\d+)$", text, re.M)
    if step is None or total is None:  # of the end of the program
        return {}
    found, names = Counter[str](), dict[str, str]()
    inside, function, of_call = False, "", False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in ("ob", "fn"):
            number, _, name = value.partition(" ")
            names.setdefault(key + number, name)
            if key == "ob":
                inside = "conjoint_kernels" in names["ob" + number]
            else:
                function = names["fn" + number].partition(".")[0]
        elif key in ("cob", "cfn"):  # of a function that is called: names it may be the first to use
            number, _, name = value.partition(" ")
            names.setdefault(key[1:] + number, name)
        elif key == "calls":
            of_call = True  # the next line counts what the callee took
        elif line[:1].isdigit() or line[:1] in "+-*":
            if inside and not of_call:
                found[function] += sum(int(number) for number in line.split()[1:])
            of_call = False
    kernels = {f"{step[1]}: {name}": number for name, number in sorted(found.items())}
    return {step[1]: int(total[1]), **kernels}


def risen(before: Counts, now: Counts) -> list[str]:
    """What takes more than the limit allows. A function that is new, or moved between two names, shows in the
    total of its step; one of less than a thousandth of it is let be."""
    lines = []
    for name, number in now.items():
        whole = now[name.partition(": ")[0]]
        if name in before and number > LIMIT * before[name] and number > whole / 1000:
            lines.append(
                f"{name}: {before[name]:,} -> {number:,} instructions, {number / before[name] - 1:+.1%}"
            )
    return lines


def compare() -> tuple[str | None, list[str], Counts]:
    """(why there is nothing to compare, what has risen, the counts)"""
    reason = missing()
    if reason is not None:
        return reason, [], {}
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {"made_with": {}, "counts": {}}
    before, here = recorded["made_with"], made_with()
    other = [f"{key} {before.get(key)}, here {here[key]}" for key in here if before.get(key) != here[key]]
    counts = count()
    if other:
        return f"the record is of another machine ({'; '.join(other)})", [], counts
    return None, risen(recorded["counts"], counts), counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--why", default="", help="the reason for a rise, one line")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        run_steps(given.inside)
        return 0
    reason, lines, counts = compare()
    for name, number in counts.items():
        print(f"{number:>14,}  {name}")
    print("\n".join(lines) or reason or f"nothing rose by more than {LIMIT - 1:.0%}")
    if not given.record or not counts:
        return int(bool(lines))
    if lines and not given.why:
        print("--record: say with --why what the rise is for")
        return 1
    for line in lines:
        append_line(REASONS, f"{date.today()} {line}: {given.why}\n")
    record = json.dumps({"made_with": made_with(), "counts": counts}, indent=1)
    write_atomically(RECORD, f"{record}\n".encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
