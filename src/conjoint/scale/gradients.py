"""Sums of gradients that do not depend on how batches are spread over processes.

Float32 sums depend on their order, and Adam makes a last bit of a small gradient large. So the gradients of a
step's batches are added in float64, here and between processes: every order gives the same float32.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class GradientSums:
    """The mean gradient over a step's `batches`, from what they give one after another.

    Alone, a process takes every batch and closes the step. With others it takes all but the last of its own,
    and `reduce` adds that one, and those of the others, while its gradients are made.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], batches: int) -> None:
        self.parameters, self.batches = [p for p in parameters if p.requires_grad], batches
        self.sums: dict[Tensor, Tensor] = {}

    def take(self) -> None:
        """Add the gradients of one batch, and clear them for the next."""
        for p in self.parameters:
            if p.grad is not None:
                kept = self.sums.get(p)
                self.sums[p] = p.grad.double() if kept is None else kept.add_(p.grad)
                p.grad = None

    def reduce(self, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        """For DistributedDataParallel, in place of its own reduction of a group of parameters."""
        total = bucket.buffer().double()
        start = 0
        for p in bucket.parameters():
            if p in self.sums:
                total[start : start + p.numel()] += self.sums.pop(p).flatten()
            start += p.numel()

        def rounded(done: torch.futures.Future[list[Tensor]]) -> Tensor:
            return bucket.buffer().copy_(done.value()[0].div_(self.batches))

        work: Any = dist.all_reduce(total, async_op=True)
        return work.get_future().then(rounded)

    def close(self) -> None:
        """Leave the mean in `.grad`, after the last batch of a process that is alone."""
        self.take()
        for p, total in self.sums.items():
            p.grad = total.div_(self.batches).to(p.dtype)
        self.sums = {}
