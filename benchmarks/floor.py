"""What the machine could do at best: matrix products at full speed, every array moved once."""

import time
from collections.abc import Callable

import torch

from .graphs import Case


def gemm_flops(size: int = 2048, repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Floating-point operations per second of a square matrix product."""
    a = torch.randn(size, size)
    times = []
    for _ in range(repeats):
        start = clock()
        a @ a
        times.append(clock() - start)
    return 2 * size**3 / min(times)


def bandwidth(
    megabytes: int = 512, repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Bytes per second of reading one array and writing another."""
    x = torch.ones(megabytes << 18)
    y = torch.empty_like(x)
    times = []
    for _ in range(repeats):
        start = clock()
        y.copy_(x)
        times.append(clock() - start)
    return 2 * x.numel() * 4 / min(times)


def serial_floor(case: Case, flops: float, bytes_per_second: float) -> dict[str, float]:
    """Seconds of a two-layer step, the first layer aggregating first: products, then traffic, no overlap.

    Traffic: each entry gathers one row, forward and backward, in both layers; each hidden array is written
    once and read once in both directions.
    """
    nodes, features = case.x.shape
    entries = case.graph.num_entries
    hidden, out = case.heads * case.hidden, case.out_heads * case.classes
    products = 3 * 2 * nodes * (features * hidden + hidden * out)
    gathered = 2 * entries * (features + out) * 4
    streamed = nodes * 4 * (4 * case.heads * features + 8 * hidden + 8 * out)
    return {"products": products / flops, "traffic": (gathered + streamed) / bytes_per_second}
