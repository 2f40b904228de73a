"""Memory is given again, and a gradient overwritten, only where nobody else can see it."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from conjoint import kernels
from conjoint.kernels import memory
from conjoint.nn import ops
from conjoint.nn.ops import activation
from kernel_cases import check, numbers

LIKE = torch.zeros(1)
SEED = torch.tensor([3])
WEIGHT = torch.linspace(-1, 1, 12).view(3, 4)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LARGE_BYTES", 0)


def test_memory_comes_back_when_nobody_holds_it() -> None:
    with kernels.kept_memory():
        first = memory.empty(LIKE, 100)
        place = first.data_ptr()
        del first
        assert memory.empty(LIKE, 5, 18).data_ptr() == place
        assert memory.empty(LIKE, 10).data_ptr() != place  # far too small for that buffer
        assert memory.empty(LIKE, 200).data_ptr() != place  # too large for it, so it is given back
        assert len(memory._pool.buffers if memory._pool else ()) == 1


@pytest.mark.parametrize("keep", [lambda t: t, lambda t: t[3:5], lambda t: t.numpy(), lambda t: t.detach()])
def test_memory_that_somebody_holds_is_not_given_away(keep: Callable[[Tensor], Any]) -> None:
    with kernels.kept_memory():
        held = keep(memory.empty(LIKE, 100).fill_(7.0))
        other = memory.empty(LIKE, 100).fill_(1.0)
        assert float(held[0]) == 7.0
        assert float(other[0]) == 1.0


def test_outside_nothing_is_kept() -> None:
    with kernels.kept_memory(), kernels.kept_memory():
        kept = memory.empty(LIKE, 10)
        assert memory.pooled(kept)
    assert not memory.pooled(kept)
    assert not memory.pooled(memory.empty(LIKE, 10))
    assert kept.fill_(3.0).sum() == 30.0


@pytest.fixture
def recycled(monkeypatch: pytest.MonkeyPatch) -> memory._Recycled:
    """Small results in the buffers that are kept without being asked, at most 1000 bytes of them."""
    monkeypatch.setattr(memory, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(memory, "MIDDLE_BYTES", 0)
    monkeypatch.setattr(memory, "RECYCLED_BYTES", 1000)
    monkeypatch.setattr(memory, "_recycled", memory._Recycled())
    assert memory._recycled is not None
    return memory._recycled


def test_middling_results_come_back_in_the_same_memory(recycled: memory._Recycled) -> None:
    first = memory.empty(LIKE, 100)
    place = first.data_ptr()
    del first
    assert memory.empty(LIKE, 99).data_ptr() != place  # of the exact size alone
    held = memory.empty(LIKE, 10, 10)[2:4]
    assert held.untyped_storage().data_ptr() == place
    assert held.untyped_storage().nbytes() == 400
    assert memory.empty(LIKE, 100).data_ptr() != place  # somebody holds it
    assert recycled.total <= 1000


def test_too_many_buffers_are_let_go(recycled: memory._Recycled) -> None:
    results = [memory.empty(LIKE, 100).fill_(float(k)) for k in range(9)]
    assert recycled.total <= 1000
    assert [float(one.sum()) for one in results] == [100.0 * k for k in range(9)]


def test_another_thread_has_its_own_buffers(recycled: memory._Recycled) -> None:
    place = memory.empty(LIKE, 100).data_ptr()
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(memory.empty(LIKE, 100).data_ptr()))
    other.start()
    other.join()
    assert memory.empty(LIKE, 100).data_ptr() == place != found[0]


def test_a_step_in_kept_memory_gives_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HUGE_BYTES", 0)
    seed = torch.tensor([5])

    def layers(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        hidden = ops.activate_and_drop(ops.project(x, first), "elu", 0.3, seed)
        return ops.project(ops.activate_and_drop(hidden, "relu", 0.3, seed), second)

    inputs = (numbers(40, 6, seed=1), numbers(9, 6, seed=2), numbers(4, 9, seed=3))
    with kernels.kept_memory():
        for _ in range(3):  # later rounds write over what earlier ones left
            check(layers, *inputs)


def _hidden(x: Tensor) -> Tensor:
    return ops.activate_and_drop(x * 1, "elu", 0.5, SEED)


def _alone(x: Tensor) -> Tensor:
    return (_hidden(x) @ WEIGHT).sum()


def _added(x: Tensor) -> Tensor:
    return ((_hidden(x) + x) @ WEIGHT).sum()


def _read_twice(x: Tensor) -> Tensor:
    hidden = _hidden(x)
    return (hidden @ WEIGHT).sum() + (hidden @ WEIGHT).square().sum()


@pytest.mark.parametrize("loss", [_alone, _added, _read_twice])
def test_same_gradient_in_place_or_not(
    loss: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.linspace(-2, 2, 15).view(5, 3).requires_grad_()
    (plain,) = torch.autograd.grad(loss(x), x)
    monkeypatch.setattr(memory, "HUGE_BYTES", 0)
    (found,) = torch.autograd.grad(loss(x), x)
    assert torch.equal(found, plain)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("huge", [True, False])
def test_it_does_happen_to_huge_gradients(huge: bool, pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    overwritten = []
    run: Any = activation.run

    def watched(name: str, dtype: torch.dtype, reads: Any, writes: Any) -> None:
        if name == "activate_and_drop_backward":
            overwritten.append(writes[0] is reads[0])
        run(name, dtype, reads, writes)

    monkeypatch.setattr(memory, "HUGE_BYTES", 5 * 3 * 4 + (0 if huge else 1))
    monkeypatch.setattr(activation, "run", watched)
    memory._references_when_alone.cache_clear()  # as in a process that asks for the first time
    with kernels.kept_memory() if pooled else nullcontext():
        x = torch.ones(5, 3, requires_grad=True)
        ops.project(_hidden(x), WEIGHT.t()).sum().backward()
    assert overwritten == [huge]


def test_a_gradient_that_a_hook_keeps_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HUGE_BYTES", 0)
    x = torch.ones(5, 3, requires_grad=True)
    hidden, kept = _hidden(x), list[Tensor]()
    hidden.register_hook(kept.append)
    hidden.retain_grad()
    (hidden @ WEIGHT).sum().backward()
    expected = WEIGHT.sum(dim=1).expand(5, 3)
    assert hidden.grad is not None
    torch.testing.assert_close(kept[0], expected)
    torch.testing.assert_close(hidden.grad, expected)


def test_small_gradients_are_never_overwritten() -> None:
    assert not memory.may_overwrite(torch.ones(4))


def test_buffers_of_exactly_the_limit_are_kept(recycled: memory._Recycled) -> None:
    kept = [memory.empty(LIKE, 100), memory.empty(LIKE, 150)]
    assert recycled.total == 1000 and len(recycled.buffers) == 2 and len(kept) == 2
    memory.empty(LIKE, 1)
    assert recycled.total == 4 and list(recycled.buffers) == [4]


def test_products_of_rows_are_in_memory_that_is_kept() -> None:
    """Of a step's results they are among the largest."""
    x = torch.ones(5, 3, requires_grad=True)
    with kernels.kept_memory():
        assert memory.pooled(ops.project(x, WEIGHT.t()))
        assert not memory.pooled(x @ WEIGHT)
