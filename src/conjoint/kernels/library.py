"""Find, load and switch the compiled kernels. Everything works without them, only slower."""

import ctypes
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .build import library_path, variants

MAX_CHUNKS = 64  # as in csrc/common.h: rows of a buffer of partial sums
MAX_HEADS = 1024  # the kernels keep a few numbers per head on the stack

_REMEDY = "install a C compiler and run `python -m conjoint.kernels`, or set CONJOINT_KERNELS=0 to accept it"


class Loaded:
    """One compiled library: its file and its functions by name and precision."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.variant = path.stem.removeprefix("conjoint_kernels_")
        self.library = ctypes.CDLL(str(path))

        self.functions: dict[tuple[str, torch.dtype], Any] = {}

    def function(self, name: str, dtype: torch.dtype, arguments: Sequence[Any]) -> Any:
        """A kernel by name and precision. Its parameter types are read off the first call's arguments."""
        found = self.functions.get((name, dtype))
        if found is None:
            found = getattr(self.library, f"{name}_{'f32' if dtype == torch.float32 else 'f64'}")
            found.restype = None
            found.argtypes = [*map(_c_type, arguments), ctypes.c_int]
            self.functions[name, dtype] = found
        return found


def _c_type(value: Any) -> Any:
    """Tensors, references to structures and None go as pointers, ints as 64-bit integers."""
    if isinstance(value, int):
        return ctypes.c_int64
    return ctypes.c_double if isinstance(value, float) else ctypes.c_void_p


def _candidates() -> list[Path]:
    chosen = os.environ.get("CONJOINT_KERNELS_LIBRARY")
    if chosen:
        return [Path(chosen)]
    folder = Path(__file__).resolve().parent
    capable = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    names = [name for name in variants() if name != "avx2" or capable]
    return [library_path(folder, name) for name in reversed(names)]


def _load() -> tuple[Loaded | None, str]:
    """The best library for this machine, or None and the reason."""
    reason = "the kernels were not compiled when the package was built"
    for path in _candidates():
        if not path.exists():
            continue
        try:
            return Loaded(path), "in use"
        except OSError as error:
            reason = f"{path.name} could not be loaded: {error}"
    return None, reason


# Read once, at import: what is asked on every call must be cheap, and plain for torch.compile.
_LOADED, _REASON = _load()
_switched_off = os.environ.get("CONJOINT_KERNELS", "1") == "0"
_warned = False


def active() -> bool:
    """Whether the compiled kernels will be used. Warns once if they are wanted and missing."""
    if _LOADED is None and not _switched_off:
        _warn_once()
    return _LOADED is not None and not _switched_off


def _warn_once() -> None:
    global _warned
    if not _warned and not torch.compiler.is_compiling():
        _warned = True
        warnings.warn(f"conjoint runs without its fast kernels: {_REASON}; {_REMEDY}", stacklevel=4)


def status() -> dict[str, Any]:
    """What `conjoint doctor` shows: is the fast path in use, which build, how many threads; if not, why."""
    reason = _REASON if _LOADED else f"{_REASON}; {_REMEDY}"
    if _LOADED and _switched_off:
        reason = "switched off (CONJOINT_KERNELS=0 or inside kernels.disabled())"
    return {
        "active": _LOADED is not None and not _switched_off,
        "variant": _LOADED.variant if _LOADED else None,
        "path": str(_LOADED.path) if _LOADED else None,
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


def run(name: str, dtype: torch.dtype, *arguments: Any) -> None:
    """Call a kernel; the thread count is added as its last argument."""
    assert _LOADED is not None  # the dispatch asked `active` first
    plain = [value.data_ptr() if isinstance(value, Tensor) else value for value in arguments]
    _LOADED.function(name, dtype, arguments)(*plain, torch.get_num_threads())


def partial_sums(like: Tensor, width: int) -> Tensor:
    """A buffer in which a kernel keeps one sum per chunk of rows, in double precision."""
    return like.new_empty(MAX_CHUNKS * width, dtype=torch.float64)


def address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
