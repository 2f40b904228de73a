"""Matrix products whose bits do not depend on the number of threads.

MKL, which torch's CPU wheels carry, splits a product among its threads, and where it splits a long sum the
last bits follow the number of threads. Two public switches of MKL mend that:

- `MKL_CBWR=AVX2,STRICT` fixes the order of summation. MKL reads it at its first product in the process, so
  it is set when `conjoint` is imported. Measured: it holds for large products, not for all small ones.
- One MKL thread (`mkl_set_num_threads_local`, this thread only). Exact always, and cheap where the products
  are small; torch's other operations and our kernels keep all their threads.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

# From here on a graph's products are worth all threads, and large enough for the strict order to hold.
LARGE = 50_000


@contextlib.contextmanager
def steady_products(num_nodes: int) -> Iterator[None]:
    """Inside, products on a graph of so many nodes give the same bits at any number of threads.

    The choice depends on the graph alone: choosing by the number of threads would bring the difference back.
    """
    limit = _mkl_thread_limit() if num_nodes < LARGE else None
    if limit is None:
        yield
        return
    before = limit(1)
    try:
        yield
    finally:
        limit(before)


@cache
def _mkl_thread_limit() -> Any:
    """MKL's function, or None where torch was built with another library."""
    for name in ("libtorch_cpu.so", "torch_cpu.dll"):
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            with contextlib.suppress(OSError, AttributeError):
                limit = ctypes.CDLL(str(path)).MKL_Set_Num_Threads_Local
                limit.argtypes, limit.restype = [ctypes.c_int], ctypes.c_int
                return limit
    return None
