"""Find, load and switch the compiled kernels. Everything works without them, only slower."""

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .build import library_path, variants

MAX_HEADS = 1024  # the kernels keep a few numbers per head on the stack

_REMEDY = "install a C compiler and run `python -m conjoint.kernels`, or set CONJOINT_KERNELS=0 to accept it"


def _candidates() -> list[Path]:
    chosen = os.environ.get("CONJOINT_KERNELS_LIBRARY")
    if chosen:
        return [Path(chosen)]
    folder = Path(__file__).resolve().parent
    capable = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    names = [name for name in variants() if name != "avx2" or capable]
    return [library_path(folder, name) for name in reversed(names)]


def _load() -> tuple[ctypes.CDLL | None, Path | None, str]:
    """The best library for this machine and its file, or None and the reason."""
    reason = "the kernels were not compiled when the package was built"
    for path in _candidates():
        if not path.exists():
            continue
        try:
            return ctypes.CDLL(str(path)), path, "in use"
        except OSError as error:
            reason = f"{path.name} could not be loaded: {error}"
    return None, None, reason


# Read once, at import: what is asked on every call must be cheap, and plain for torch.compile.
LIBRARY, _PATH, _REASON = _load()
_switched_off = os.environ.get("CONJOINT_KERNELS", "1") == "0"
_warned = False


def active() -> bool:
    """Whether the compiled kernels will be used. Warns once if they are wanted and missing."""
    global _warned
    if LIBRARY is None and not (_switched_off or _warned or torch.compiler.is_compiling()):
        _warned = True
        warnings.warn(f"conjoint runs without its fast kernels: {_REASON}; {_REMEDY}", stacklevel=3)
    return LIBRARY is not None and not _switched_off


def takes(first: Tensor, *others: Tensor | None) -> bool:
    """Whether the kernels take these tensors: on the CPU, one float type, nothing empty."""
    dtype = first.dtype
    if (dtype != torch.float32 and dtype != torch.float64) or not active():
        return False
    for tensor in (first, *others):
        if tensor is not None and (tensor.dtype != dtype or not tensor.is_cpu or tensor.numel() == 0):
            return False
    return True


def status() -> dict[str, Any]:
    """What `conjoint doctor` shows: is the fast path in use, which build, how many threads; if not, why."""
    reason = _REASON if LIBRARY else f"{_REASON}; {_REMEDY}"
    if LIBRARY and _switched_off:
        reason = "switched off (CONJOINT_KERNELS=0 or inside kernels.disabled())"
    return {
        "active": LIBRARY is not None and not _switched_off,
        "variant": _PATH.stem.removeprefix("conjoint_kernels_") if _PATH else None,
        "path": str(_PATH) if _PATH else None,
        "threads": torch.get_num_threads(),
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
