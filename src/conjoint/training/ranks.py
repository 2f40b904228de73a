"""Several processes that train one model, each on its share of the batches: what they exchange.

All calls are collective: every process makes the same ones in the same order. A process that has died, or is
late beyond the time-out, ends the others with one line instead of leaving them waiting.
"""

import contextlib
import datetime
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import ConjointError, InputError

DEFAULT_TIMEOUT = 600.0
Rows = tuple[Tensor, Tensor]  # numbers of rows, and the rows
Reduce = Callable[[dist.GradBucket], torch.futures.Future[Tensor]]
Batchwise = Callable[[], contextlib.AbstractContextManager[None]]


class PeerLost(ConjointError):
    """Another process of the same training has gone. The launcher starts all of them anew."""


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run folder."""
        return self.rank == 0

    @contextlib.contextmanager
    def shared_errors(self) -> Iterator[None]:
        """An error that the user can mend, met by one process inside the block, ends all of them with it."""
        if self.world == 1:
            yield
            return
        problem: Exception | None = None
        try:
            yield
        except (ConjointError, OSError, MemoryError) as error:
            problem = error
        if not self.any_of(problem is not None):
            return
        messages: list[Any] = [None] * self.world
        with self.connection_errors():
            dist.all_gather_object(messages, None if problem is None else str(problem))
        if problem is not None:
            raise problem
        first = next(rank for rank, text in enumerate(messages) if text is not None)
        raise InputError(f"rank {first} of {self.world} cannot go on: {messages[first]}")

    @contextlib.contextmanager
    def connection_errors(self) -> Iterator[None]:
        """Turn what the engine says about a lost connection into one line."""
        try:
            yield
        except ConjointError:
            raise
        except RuntimeError as error:
            if self.world == 1 or not dist.is_initialized():
                raise
            reason = (str(error).splitlines() or ["no answer"])[0].partition(". This is typically")[0]
            raise PeerLost(
                f"rank {self.rank} of {self.world}: another rank has gone or is late ({reason}); see its own "
                "message, and start all ranks again with the same --out to go on"
            ) from None

    def any_of(self, flag: bool) -> bool:
        """Whether it is true in any process."""
        return any(values[0] for values in self.gather([float(flag)]))

    def gather(self, values: list[float]) -> list[list[float]]:
        """The same few numbers of every process, in the order of ranks."""
        if self.world == 1:
            return [values]
        mine = torch.tensor(values, dtype=torch.float64)
        found = [torch.empty_like(mine) for _ in range(self.world)]
        with self.connection_errors():
            dist.all_gather(found, mine)
        return [part.tolist() for part in found]

    def mean(self, values: Tensor) -> Tensor:
        if self.world > 1:
            with self.connection_errors():
                dist.all_reduce(values)
            values /= self.world
        return values

    def broadcast(self, value: Any) -> Any:
        """Any plain object of rank 0."""
        if self.world == 1:
            return value
        box = [value]
        with self.connection_errors():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def broadcast_tensors(self, *tensors: Tensor) -> None:
        """Overwrite tensors, of the same shapes everywhere, with those of rank 0."""
        if self.world > 1:
            with self.connection_errors(), torch.no_grad():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def send_to_owners(self, rows: Tensor, values: Tensor) -> Rows:
        """Rows go to the process that owns them, which gets them in the order of ranks. [n], [n, columns]"""
        if self.world == 1:
            return rows, values
        owner = rows % self.world
        parts = [(owner == rank).nonzero().squeeze(1) for rank in range(self.world)]
        order = torch.cat(parts)  # many times faster than to sort
        return self._exchange(rows[order], values[order], [len(part) for part in parts])

    def send_to_all(self, rows: Tensor, values: Tensor) -> Rows:
        """Own rows go to every other process; what comes back are theirs. [n], [n, columns]"""
        others = self.world - 1
        counts = [len(rows)] * self.world
        counts[self.rank] = 0
        return self._exchange(rows.repeat(others), values.repeat(others, 1), counts)

    def _exchange(self, rows: Tensor, values: Tensor, counts: list[int]) -> Rows:
        """The first counts[0] rows go to rank 0, the next counts[1] to rank 1, and so on."""
        device, rows, values = values.device, rows.cpu(), values.cpu()
        got = [int(line[self.rank]) for line in self.gather([float(count) for count in counts])]
        ids, found = rows.new_empty(sum(got)), values.new_empty(sum(got), values.size(1))
        with self.connection_errors():
            dist.all_to_all_single(ids, rows, got, counts)
            dist.all_to_all_single(found, values, got, counts)
        return ids.to(device), found.to(device)

    def gather_rows(self, *tensors: Tensor) -> None:
        """Overwrite the rows that others own with theirs; tensors have the same shapes everywhere."""
        if self.world > 1:
            with self.connection_errors():
                for tensor, rank in itertools.product(tensors, range(self.world)):
                    theirs = tensor[rank :: self.world].contiguous()
                    dist.broadcast(theirs, src=rank)
                    tensor[rank :: self.world] = theirs

    def parallel(self, model: nn.Module, reduce: Reduce) -> nn.Module:
        """The model whose backward pass joins the gradients of all processes by `reduce`."""
        if self.world == 1:
            return model
        parallel = nn.parallel.DistributedDataParallel
        # Buffers are kept in step by the training itself; newer versions of torch call this option otherwise.
        options = ("forward_sync_buffers", "broadcast_buffers")
        quiet = next(name for name in options if name in inspect.signature(parallel.__init__).parameters)
        with self.connection_errors():
            wrapped = parallel(model, **{quiet: False})  # type: ignore[arg-type]
            wrapped.register_comm_hook(None, lambda _, bucket: reduce(bucket))
            return wrapped


alone = Ranks()


def launched() -> bool:
    """Whether torchrun (or another launcher that sets the same variables) started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def restarted() -> bool:
    """Whether the launcher has started the processes again after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def own_device(device: str) -> str:
    """Of several ranks on a machine with GPUs, each takes one."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and "LOCAL_RANK" in os.environ else device


@contextlib.contextmanager
def connected(device: str = "cpu", timeout: float = DEFAULT_TIMEOUT) -> Iterator[Ranks]:
    """The processes that torchrun started, found through its environment variables. Without it: this one."""
    if not launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield alone
        return
    # On a GPU the gradients travel by nccl, small numbers and rows of V still by gloo.
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    wait = datetime.timedelta(seconds=timeout)
    try:
        store, rank, world = next(iter(dist.rendezvous("env://", timeout=wait)))
        store.set_timeout(wait)
        # The launcher's store outlives the processes: after a restart they would find addresses of the dead.
        fresh = dist.PrefixStore(f"conjoint/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        dist.init_process_group(backend, store=fresh, rank=rank, world_size=world, timeout=wait)
    except (RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"the ranks do not find each other ({reason}); check MASTER_ADDR and the world size"
        ) from None
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


class GradientSums:
    """The mean gradient over a step's `batches`, whatever their order and the process that computes them.

    Float32 sums depend on their order, and Adam makes a last bit of a small gradient large. So the gradients
    of a step's batches are added in float64, here and between processes: every order gives the same float32.
    Alone, a process adds every batch and closes the step. With others it adds all but the last of its own,
    and `reduce` adds that one, and those of the others, while its gradients are made.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], batches: int) -> None:
        self.parameters, self.batches = [p for p in parameters if p.requires_grad], batches
        self.sums: dict[Tensor, Tensor] = {}

    def add(self) -> None:
        """Add the gradients of one batch, and clear them for the next."""
        for p in self.parameters:
            if p.grad is not None:
                total = self.sums.get(p)
                self.sums[p] = p.grad.double() if total is None else total.add_(p.grad)
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

        reduction: Any = dist.all_reduce(total, async_op=True)
        return reduction.get_future().then(rounded)

    def close(self) -> None:
        """Leave the mean in `.grad`, after the last batch of a process that is alone."""
        self.add()
        for p, total in self.sums.items():
            p.grad = total.div_(self.batches).to(p.dtype)
        self.sums = {}


@contextlib.contextmanager
def averaged_statistics(model: nn.Module, count: int, ranks: Ranks) -> Iterator[Batchwise]:
    """Running statistics of batch normalisation that do not depend on how batches are spread over processes.

    Every one of a step's batches moves them from where the step began, and the mean over all is kept. Each
    batch is computed inside the context that is given.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d) and m.running_mean is not None]
    running: list[Tensor] = [t for m in norms for t in (m.running_mean, m.running_var) if t is not None]
    counters = [m.num_batches_tracked for m in norms if m.num_batches_tracked is not None]
    before, steps = [t.clone() for t in running], [t.clone() for t in counters]
    sums = [torch.zeros_like(t, dtype=torch.float64) for t in running]  # the same in every order

    @contextlib.contextmanager
    def one_batch() -> Iterator[None]:
        for now, then in zip(running, before, strict=True):
            now.copy_(then)
        yield
        for total, now in zip(sums, running, strict=True):
            total += now

    yield one_batch
    for now, total in zip(running, sums, strict=True):
        now.copy_(ranks.mean(total / count))
    for counter, then in zip(counters, steps, strict=True):
        counter.copy_(then + 1)
