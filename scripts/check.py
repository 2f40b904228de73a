"""What must hold before a change lands: format, lint, types, pages, tests. Extra arguments go to pytest."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("sphinx", "-E", "-W", "--keep-going", "-q", "docs", "build/site"),
    ("pytest", "-q", *sys.argv[1:]),
)


# As `import conjoint` does, but before any test imports torch: waiting threads sleep soon on a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def main() -> int:
    for check in CHECKS:
        print("$", *check, flush=True)
        status = subprocess.run([sys.executable, "-m", *check], cwd=ROOT).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
