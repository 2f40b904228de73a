"""Find, load and switch the compiled kernels, without torch. Everything works without them, only slower."""

import ctypes
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .build import library_path, variants

Found = tuple[ctypes.CDLL | None, Path | None, str]

_REMEDY = "install a C compiler and run `python -m conjoint.kernels`, or set CONJOINT_KERNELS=0 to accept it"
_found: Found | None = None
_switched_off = os.environ.get("CONJOINT_KERNELS", "1") == "0"
_warned = False


def found() -> Found:
    """The best library for this machine and its file, or None and the reason.

    Loaded when it is first asked for: by then a process that computes has torch, whose OpenMP it shares.
    """
    global _found
    if _found is None:
        _found = _load()
    return _found


def _load() -> Found:
    folder, chosen = Path(__file__).resolve().parent, os.environ.get("CONJOINT_KERNELS_LIBRARY")
    names = [name for name in reversed(variants()) if name != "avx2" or _has_avx2()]
    reason = "the kernels were not compiled when the package was built"
    for path in [Path(chosen)] if chosen else [library_path(folder, name) for name in names]:
        if not path.exists():
            continue
        try:
            return ctypes.CDLL(str(path)), path, "in use"
        except OSError as error:
            reason = f"{path.name} could not be loaded: {error}"
    return None, None, reason


def _has_avx2() -> bool:
    try:
        words = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        import torch  # knows the processor where the system does not tell

        return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    return "avx2" in words and "fma" in words


def active(quiet: bool = False) -> bool:
    """Whether the compiled kernels will be used. If they are wanted and missing, it warns once, or not."""
    global _warned
    library, _, reason = found()
    if library is None and not (_switched_off or _warned or quiet):
        _warned = True
        warnings.warn(f"conjoint runs without its fast kernels: {reason}; {_REMEDY}", stacklevel=3)
    return library is not None and not _switched_off


def status() -> dict[str, Any]:
    """What `conjoint doctor` shows: is the fast path in use, which build, how many threads; if not, why."""
    library, path, reason = found()
    if library is None:
        reason = f"{reason}; {_REMEDY}"
    elif _switched_off:
        reason = "switched off (CONJOINT_KERNELS=0 or inside kernels.disabled())"
    return {
        "active": library is not None and not _switched_off,
        "variant": path.stem.removeprefix("conjoint_kernels_") if path else None,
        "path": str(path) if path else None,
        "threads": threads(),
        "reason": reason,
    }


@contextmanager
def disabled() -> Iterator[None]:
    """Within this block the plain torch definitions are used, as if nothing had been compiled."""
    global _switched_off
    before, _switched_off = _switched_off, True
    try:
        yield
    finally:
        _switched_off = before


def threads() -> int:
    """As many as torch takes: asked of its library alone, which loads in a fifth of torch's time."""
    spec = None if "torch" in sys.modules else find_spec("torch")
    if spec is not None and spec.origin is not None:
        with suppress(OSError, AttributeError):  # another build of torch
            library = ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libtorch_cpu.so"))
            return int(library._ZN2at15get_num_threadsEv())  # at::get_num_threads()
    import torch  # there already, or the only one who knows

    return torch.get_num_threads()
