"""Running statistics of batch normalisation that do not depend on how batches are spread over processes."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from .ranks import Ranks


@contextlib.contextmanager
def averaged_statistics(model: nn.Module, count: int, ranks: Ranks) -> Iterator[Callable[[], None]]:
    """Inside, every one of a step's batches moves the statistics from where the step began; the step's result
    is the mean over all of them. To be called before each batch: the function that is given.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d) and m.running_mean is not None]
    kept: list[Tensor] = [t for m in norms for t in (m.running_mean, m.running_var) if t is not None]
    counters = [m.num_batches_tracked for m in norms if m.num_batches_tracked is not None]
    before = [t.clone() for t in kept]
    steps = [t.clone() for t in counters]
    sums = [torch.zeros_like(t, dtype=torch.float64) for t in kept]  # the same in every order
    begun = False

    def add() -> None:
        for total, now in zip(sums, kept, strict=True):
            total += now

    def next_batch() -> None:
        nonlocal begun
        if begun:
            add()
        begun = True
        for now, then in zip(kept, before, strict=True):
            now.copy_(then)

    yield next_batch
    add()
    for now, total in zip(kept, sums, strict=True):
        now.copy_(ranks.mean(total / count))
    for counter, then in zip(counters, steps, strict=True):
        counter.copy_(then + 1)
