"""How much memory this process has held at most, counted from a moment of our choosing."""

import resource
import sys
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def start_counting() -> float:
    """Forget the peak so far, where the system can (Linux); returns what is held now, in MiB."""
    try:
        CLEAR.write_text("5")
        return _status("VmRSS")
    except OSError:
        return _peak_since_start()


def peak() -> float:
    """The most that was held since `start_counting`, in MiB; elsewhere than on Linux since the start."""
    try:
        return _status("VmHWM")
    except OSError:
        return _peak_since_start()


def _status(name: str) -> float:
    for line in STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"{STATUS} has no {name}")


def _peak_since_start() -> float:
    unit = 1024**2 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
