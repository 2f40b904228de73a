"""Run the kernels' tests on a build with AddressSanitizer and UndefinedBehaviorSanitizer.

    python scripts/sanitize.py [more arguments for pytest]

Tensors come from the C library's allocator, which AddressSanitizer replaces, so a kernel that reads or writes
beside a tensor is caught. Leaks are not looked for: Python and torch keep what they like until the end.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from conjoint.kernels.build import SANITIZE, compile_library, compiler, library_path

ROOT = Path(__file__).resolve().parent.parent
# The tests of the loader choose their own library, and torch.compile starts helper processes.
LEFT_OUT = "test_library.py"


def runtime(name: str) -> str:
    """The sanitizer's shared library, which must be loaded before Python's own allocations."""
    command = [*(compiler() or ["cc"]), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        library = library_path(Path(folder), "sanitized")
        trouble = compile_library(library, SANITIZE)
        if trouble is not None:
            print(f"sanitize: the kernels could not be compiled with sanitizers: {trouble}", file=sys.stderr)
            return 2
        environment = {
            **os.environ,
            "CONJOINT_KERNELS_LIBRARY": str(library),
            "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONPATH": str(ROOT / "src"),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "tests/kernels",
            "tests/nn/ops",
            f"--ignore=tests/kernels/{LEFT_OUT}",
            *sys.argv[1:],
        ]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    raise SystemExit(main())
