"""Several processes that train one model, each on its share of the batches: what they tell each other.

All calls are collective: every process makes the same ones in the same order. A process that has died, or is
late beyond the time-out, ends the others with one line instead of leaving them waiting.
"""

import contextlib
import datetime
import inspect
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import ConjointError, InputError

DEFAULT_TIMEOUT = 600.0
Rows = tuple[Tensor, Tensor]  # numbers of rows, and the rows
Reduce = Callable[[dist.GradBucket], torch.futures.Future[Tensor]]


class PeerLost(ConjointError):
    """Another process of the same training has gone. The launcher starts all of them anew."""


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes the run folder."""
        return self.rank == 0

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """An error that the user can mend, met by one process inside the block, ends all of them with it."""
        if self.world == 1:
            yield
            return
        problem: Exception | None = None
        try:
            yield
        except (ConjointError, OSError, MemoryError) as error:
            problem = error
        with self.listening():
            flags = self._numbers([float(problem is not None)])
            if not any(flag[0] for flag in flags):
                return
            said: list[Any] = [None] * self.world
            dist.all_gather_object(said, None if problem is None else str(problem))
        if problem is not None:
            raise problem
        first = next(rank for rank, text in enumerate(said) if text is not None)
        raise InputError(f"rank {first} of {self.world} cannot go on: {said[first]}")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Turn what the engine says about a lost connection into one line."""
        try:
            yield
        except ConjointError:
            raise
        except RuntimeError as error:
            if self.world == 1 or not dist.is_initialized():
                raise
            said = (str(error).splitlines() or ["no answer"])[0].partition(". This is typically")[0]
            raise PeerLost(
                f"rank {self.rank} of {self.world}: another rank has gone or is late ({said}); see its own "
                "message, and start all ranks again with the same --out to go on"
            ) from None

    def agree(self, wish: bool) -> bool:
        """Whether any process wants it."""
        return wish if self.world == 1 else any(flag[0] for flag in self._numbers([float(wish)]))

    def numbers(self, values: list[float]) -> list[list[float]]:
        """The same few numbers of every process, in the order of ranks."""
        return [values] if self.world == 1 else self._numbers(values)

    def _numbers(self, values: list[float]) -> list[list[float]]:
        with self.listening():
            mine = torch.tensor(values, dtype=torch.float64)
            found = [torch.empty_like(mine) for _ in range(self.world)]
            dist.all_gather(found, mine)
        return [part.tolist() for part in found]

    def to_owners(self, rows: Tensor, values: Tensor) -> Rows:
        """Rows go to the process that owns them, which gets them in the order of ranks. [n], [n, columns]"""
        if self.world == 1:
            return rows, values
        owner = rows % self.world
        parts = [(owner == rank).nonzero().squeeze(1) for rank in range(self.world)]
        order = torch.cat(parts)  # many times faster than to sort
        return self._exchange(rows[order], values[order], [len(part) for part in parts])

    def to_all(self, rows: Tensor, values: Tensor) -> Rows:
        """What every other process says about its own rows. [n], [n, columns]"""
        others = self.world - 1
        counts = [len(rows)] * self.world
        counts[self.rank] = 0
        return self._exchange(rows.repeat(others), values.repeat(others, 1), counts)

    def _exchange(self, rows: Tensor, values: Tensor, counts: list[int]) -> Rows:
        """The first counts[0] rows go to rank 0, the next counts[1] to rank 1, and so on."""
        device, rows, values = values.device, rows.cpu(), values.cpu()
        got = [int(line[self.rank]) for line in self._numbers([float(count) for count in counts])]
        ids, found = rows.new_empty(sum(got)), values.new_empty(sum(got), values.size(1))
        with self.listening():
            dist.all_to_all_single(ids, rows, got, counts)
            dist.all_to_all_single(found, values, got, counts)
        return ids.to(device), found.to(device)

    def collect_rows(self, *tensors: Tensor) -> None:
        """Overwrite the rows that others own with theirs; tensors have the same shapes everywhere."""
        if self.world > 1:
            with self.listening():
                for tensor, rank in itertools.product(tensors, range(self.world)):
                    theirs = tensor[rank :: self.world].contiguous()
                    dist.broadcast(theirs, src=rank)
                    tensor[rank :: self.world] = theirs

    def mean(self, values: Tensor) -> Tensor:
        if self.world > 1:
            with self.listening():
                dist.all_reduce(values)
            values /= self.world
        return values

    def from_first(self, value: Any) -> Any:
        """Any plain object of rank 0."""
        if self.world == 1:
            return value
        box = [value]
        with self.listening():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def copy_first(self, *tensors: Tensor) -> None:
        """Overwrite tensors, of the same shapes everywhere, with those of rank 0."""
        if self.world > 1:
            with self.listening(), torch.no_grad():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def wrap(self, model: nn.Module, reduce: Reduce) -> nn.Module:
        """The model whose backward pass joins the gradients of all processes by `reduce`."""
        if self.world == 1:
            return model
        parallel = nn.parallel.DistributedDataParallel
        # Buffers are kept in step by the training itself; newer versions of torch call this option otherwise.
        names = inspect.signature(parallel.__init__).parameters
        quiet: dict[str, Any] = {"broadcast_buffers": False}
        if "forward_sync_buffers" in names:
            quiet = {"forward_sync_buffers": False}
        with self.listening():
            wrapped = parallel(model, **quiet)
            wrapped.register_comm_hook(None, lambda _, bucket: reduce(bucket))
            return wrapped


alone = Ranks()


def launched() -> bool:
    """Whether torchrun (or another launcher that speaks its language) started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def restarted() -> bool:
    """Whether the launcher has started the processes again after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def own_device(device: str) -> str:
    """Of several ranks on a machine with GPUs, each takes one."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and "LOCAL_RANK" in os.environ else device


def _init(backend: str, timeout: datetime.timedelta) -> None:
    """As torch does it from the environment, but with addresses of its own for each start.

    The launcher's store outlives the processes: after a restart they would find the addresses of the dead.
    """
    store, rank, world = next(iter(dist.rendezvous("env://", timeout=timeout)))
    store.set_timeout(timeout)
    fresh = dist.PrefixStore(f"conjoint/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=fresh, rank=rank, world_size=world, timeout=timeout)


@contextlib.contextmanager
def joined(device: str = "cpu", timeout: float = DEFAULT_TIMEOUT) -> Iterator[Ranks]:
    """The processes that torchrun started, found through its environment variables. Without it: this one."""
    if not launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield alone
        return
    # On a GPU the gradients travel by nccl, small numbers and rows of V still by gloo.
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    try:
        _init(backend, datetime.timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"the ranks do not find each other ({said}); check MASTER_ADDR and the world size"
        ) from None
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
