"""A gradient is overwritten only where nobody else can see it."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from conjoint import kernels
from conjoint.kernels import activation, ownership, projection, workspace
from conjoint.nn import ops

SEED = torch.tensor([3])
WEIGHT = torch.linspace(-1, 1, 12).view(3, 4)


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
    monkeypatch.setattr(ownership, "LARGE_BYTES", 0)
    (found,) = torch.autograd.grad(loss(x), x)
    assert torch.equal(found, plain)


@pytest.mark.parametrize("pooled", [False, True])
def test_it_does_happen(pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    overwritten = []
    fill: Any = activation._fill_backward

    def watched(grad: Tensor, *rest: Any, out: Tensor) -> None:
        overwritten.append(out is grad)
        fill(grad, *rest, out=out)

    monkeypatch.setattr(ownership, "LARGE_BYTES", 0)
    monkeypatch.setattr(activation, "_fill_backward", watched)
    monkeypatch.setattr(projection, "LARGE_BYTES", 0)
    monkeypatch.setattr(workspace, "LARGE_BYTES", 0)
    with kernels.kept_memory() if pooled else nullcontext():
        x = torch.ones(5, 3, requires_grad=True)
        ops.project(_hidden(x), WEIGHT.t()).sum().backward()
    assert overwritten == [True]


def test_a_gradient_that_a_hook_keeps_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "LARGE_BYTES", 0)
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
    assert not ownership.may_overwrite(torch.ones(4))
