from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from conjoint import kernels
from conjoint.kernels import ownership
from conjoint.kernels import workspace as pool
from conjoint.nn import ops
from kernel_cases import check, numbers

LIKE = torch.zeros(1)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LARGE_BYTES", 0)


def test_memory_comes_back_when_nobody_holds_it() -> None:
    with kernels.kept_memory():
        first = pool.empty(LIKE, 100)
        place = first.data_ptr()
        del first
        assert pool.empty(LIKE, 5, 18).data_ptr() == place
        assert pool.empty(LIKE, 10).data_ptr() != place  # far too small for that buffer
        assert pool.empty(LIKE, 200).data_ptr() != place  # too large for it, so it is given back
        assert len(pool._pool.buffers if pool._pool else ()) == 1


@pytest.mark.parametrize("keep", [lambda t: t, lambda t: t[3:5], lambda t: t.numpy(), lambda t: t.detach()])
def test_memory_that_somebody_holds_is_not_given_away(keep: Callable[[Tensor], Any]) -> None:
    with kernels.kept_memory():
        held = keep(pool.empty(LIKE, 100).fill_(7.0))
        other = pool.empty(LIKE, 100).fill_(1.0)
        assert float(held[0]) == 7.0
        assert float(other[0]) == 1.0


def test_outside_nothing_is_kept() -> None:
    with kernels.kept_memory(), kernels.kept_memory():
        kept = pool.empty(LIKE, 10)
        assert pool.holds(kept)
    assert not pool.holds(kept)
    assert not pool.holds(pool.empty(LIKE, 10))
    assert kept.fill_(3.0).sum() == 30.0


def test_a_step_in_the_workspace_gives_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "LARGE_BYTES", 0)
    seed = torch.tensor([5])

    def layers(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        hidden = ops.activate_and_drop(ops.project(x, first), "elu", 0.3, seed)
        return ops.project(ops.activate_and_drop(hidden, "relu", 0.3, seed), second)

    inputs = (numbers(40, 6, seed=1), numbers(9, 6, seed=2), numbers(4, 9, seed=3))
    with kernels.kept_memory():
        for _ in range(3):  # later rounds write over what earlier ones left
            check(layers, *inputs)
