"""Call the compiled kernels: which tensors they take, and how a call reaches C."""

import ctypes
import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..recording import compiling, direct
from .loading import active, found

MAX_HEADS = 1024  # the kernels keep a few numbers per head on the stack
MAX_CHUNKS = 64  # as in csrc/common.h: rows of a buffer of partial sums

Value = Tensor | int | float | None  # None: a null pointer
Values = tuple[Value, ...]

# Loaded at import: what is asked on every call must be cheap, and plain for torch.compile.
LIBRARY = found()[0]
# csrc/product.h is in the build for AVX2, and of use where vectors are twice as wide.
WIDE_PRODUCTS = hasattr(LIBRARY, "product_f32") and torch.backends.cpu.get_cpu_capability() == "AVX512"


def takes(first: Tensor, *others: Tensor | None) -> bool:
    """Whether the kernels take these tensors, which is decided here alone: ordinary tensors with memory on
    the CPU, of one float type, nothing empty, while torch neither traces nor exports nor transforms the call.
    They need not be contiguous: the caller makes them so."""
    dtype = first.dtype
    in_graph = compiling()
    if (dtype != torch.float32 and dtype != torch.float64) or not active(quiet=in_graph):
        return False
    if not in_graph and not direct(first, *others):
        return False
    for tensor in (first, *others):
        if tensor is None:
            continue
        if tensor.dtype != dtype or not tensor.is_cpu or tensor.numel() == 0:
            return False
        if not in_graph and (tensor.layout != torch.strided or tensor.is_neg()):  # neg: of the other sign
            return False
    return True


def partial_sums(like: Tensor, width: int) -> Tensor:
    """A buffer in which a kernel keeps one sum per chunk of rows, in double precision."""
    return like.new_empty(MAX_CHUNKS * width, dtype=torch.float64)


def run(name: str, dtype: torch.dtype, reads: Values, writes: Values, structure: Values = ()) -> None:
    """Call the C function `name` of csrc with its parameters in order: the members of a `structure`, if it
    takes one by reference; what it reads; what it writes. The thread count is added as the last.

    In eager mode the function is called directly: going through torch's dispatcher costs 20 to 60
    microseconds a call, which a small graph would notice. Under torch.compile it is one operation,
    `torch.ops.conjoint.run`, which the compiler takes for an ordinary function that writes its outputs.
    """
    if not compiling():
        _call(name, dtype, (*reads, *writes), structure)
        return
    values = (*structure, *reads)
    kinds = "".join([_kind(value) for value in values]) + "".join(["n" if t is None else "w" for t in writes])
    tensors = [value for value in values if isinstance(value, Tensor)]
    ints = [value for value in values if isinstance(value, int)]
    floats = [value for value in values if isinstance(value, float)]
    written = [value for value in writes if value is not None]
    torch.ops.conjoint.run(name, dtype, len(structure), kinds, tensors, ints, floats, written)


class _Function(NamedTuple):
    """A C function: what packs its structure, if it has one, and which of its values are pointers."""

    call: Any
    pack: Callable[..., bytes] | None
    in_structure: tuple[bool, ...]
    in_arguments: tuple[bool, ...]


_functions: dict[tuple[str, torch.dtype], _Function] = {}


def _call(name: str, dtype: torch.dtype, arguments: Values, structure: Values) -> None:
    function = _functions.get((name, dtype)) or _function(name, dtype, arguments, structure)
    words = _words(arguments, function.in_arguments)
    if function.pack is not None:
        words.insert(0, function.pack(*_words(structure, function.in_structure)))
    function.call(*words, torch.get_num_threads())


def _words(values: Values, pointers: tuple[bool, ...]) -> list[Any]:
    """Numbers as they are, and where a tensor has its first one. `takes` has looked at what comes in; a
    gradient is looked at here: `data_ptr` raises where torch.func has wrapped it."""
    return [
        value if not pointer else 0 if value is None else value.data_ptr() or _nowhere(value)  # type: ignore
        for value, pointer in zip(values, pointers, strict=True)
    ]


def _nowhere(tensor: Tensor) -> int:
    if tensor.numel():
        raise RuntimeError("conjoint: a gradient without memory; run the backward pass outside of transforms")
    return 0


def _function(name: str, dtype: torch.dtype, arguments: Values, structure: Values) -> _Function:
    """Types are read off the values of the first call."""
    call = getattr(LIBRARY, f"{name}_{'f32' if dtype == torch.float32 else 'f64'}")
    c_types = {"i": ctypes.c_int64, "f": ctypes.c_double}
    packed = [ctypes.c_char_p] if structure else []
    types = [c_types.get(_kind(value), ctypes.c_void_p) for value in arguments]
    call.restype, call.argtypes = None, [*packed, *types, ctypes.c_int]
    members = "".join([{"i": "q", "f": "d"}.get(_kind(value), "P") for value in structure])
    pointers = [tuple(_kind(value) in "tn" for value in values) for values in (structure, arguments)]
    _functions[name, dtype] = _Function(call, struct.Struct(members).pack if members else None, *pointers)
    return _functions[name, dtype]


def _kind(value: Value) -> str:
    if isinstance(value, Tensor):
        return "t"
    return "n" if value is None else "f" if isinstance(value, float) else "i"


# An operation of torch takes a list per type; `kinds` has a letter for each argument, the structure's first.
_TORCH = torch.library.Library("conjoint", "DEF")
_TORCH.define(
    "run(str name, ScalarType dtype, int members, str kinds, Tensor[] tensors, SymInt[] ints, "
    "float[] floats, Tensor(a!)[] written) -> ()"
)


def _compiled_run(name: str, dtype: torch.dtype, members: int, kinds: str, *lists: Sequence[Any]) -> None:
    following = dict(zip("tifw", map(iter, lists), strict=True), n=repeat(None))
    values = tuple(next(following[kind]) for kind in kinds)
    _call(name, dtype, values[members:], values[:members])


_TORCH.impl("run", _compiled_run, "CPU")
torch.library.register_fake("conjoint::run", lambda *_: None, lib=_TORCH)
