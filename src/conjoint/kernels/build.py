"""Compile the C kernels: called by the package's own build and by `python -m conjoint.kernels`.

Only the standard library is used here, because setup.py runs this file before anything is installed.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "csrc"
SUFFIX = ".dll" if sys.platform == "win32" else ".so"

# What lets loops with exp and comparisons become vector code without -ffast-math: no errno, no floating-point
# traps (neither is ever read), and a*b+c in one instruction. Nothing here reorders additions.
MATH = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
COMMON = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wno-psabi", *MATH)
CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
SANITIZE = ("-g", "-O1", "-fno-omit-frame-pointer", *CHECKS)


def variants() -> dict[str, tuple[str, ...]]:
    """The builds that the loader chooses from, with the flags of each."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return {"baseline": (), "avx2": ("-mavx2", "-mfma")}
    return {"baseline": ()}


def library_path(folder: Path, variant: str) -> Path:
    return folder / f"conjoint_kernels_{variant}{SUFFIX}"


def compiler() -> list[str] | None:
    """The C compiler: $CC if set, else the first usual name that is on the path."""
    chosen = os.environ.get("CC")
    if chosen:
        return shlex.split(chosen)
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return [found] if found else None


def compile_library(target: Path, flags: Sequence[str]) -> str | None:
    """Compile the sources into one library, with OpenMP if the compiler has it. Returns what went wrong."""
    command = compiler()
    if command is None:
        return "no C compiler was found (looked for $CC, cc, gcc, clang)"
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    problem = None
    for threading in ("-fopenmp", "-fopenmp-simd"):
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            call = [*command, *COMMON, *flags, threading, "-o", str(made), *sources, "-lm"]
            try:
                subprocess.run(call, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                problem = (getattr(error, "stderr", None) or str(error)).strip()
                continue
            os.replace(made, target)
            return None
    return problem


def build(folder: Path) -> str | None:
    """Build every variant into `folder`, side by side. Returns None, or why one could not be built."""
    with ThreadPoolExecutor() as pool:
        made = [
            pool.submit(compile_library, library_path(folder, name), flags)
            for name, flags in variants().items()
        ]
    return next((one.result() for one in made if one.result() is not None), None)
