"""Linear maps against PyG's; batch normalisation against torch's, and at other numbers of threads."""

import pytest
import torch
from torch import nn
from torch_geometric.nn.dense.linear import Linear as PyGLinear

from conjoint.nn.layers import BLOCK, BatchNorm, Linear, glorot
from graphs import random_features


@pytest.mark.parametrize("initializer", [None, "glorot"])
@pytest.mark.parametrize("sizes", [(1433, 64), (7, 3), (1, 1)])
def test_a_linear_map_is_drawn_as_pygs(initializer: str | None, sizes: tuple[int, int]) -> None:
    made = []
    for kind in (Linear, PyGLinear):
        torch.manual_seed(3)
        made.append(kind(*sizes, bias=True, weight_initializer=initializer))
    ours, theirs = (one.state_dict() for one in made)
    assert list(ours) == list(theirs) == ["weight", "bias"]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    x = random_features(5, sizes[0], dtype=torch.float32)
    assert torch.equal(made[0](x), made[1](x)) and repr(made[0]) == repr(made[1])


@pytest.mark.parametrize("rows", [2, 50, 2 * BLOCK + 3])
def test_values_gradients_and_running_statistics_are_torchs(rows: int) -> None:
    ours, theirs = BatchNorm(6).double(), nn.BatchNorm1d(6).double()
    x = 3 * random_features(rows, 6) + 1
    for norm in (ours, theirs):
        with torch.no_grad():
            norm.weight.copy_(torch.linspace(0.5, 2, 6))
            norm.bias.copy_(torch.linspace(-1, 1, 6))
    results = []
    for norm in (ours, theirs):
        leaf = x.clone().requires_grad_()
        out = norm(leaf)
        (out * random_features(rows, 6, seed=1)).sum().backward()
        results.append([out, leaf.grad, norm.weight.grad, norm.bias.grad, *norm.state_dict().values()])
        results[-1].append(norm.eval()(x))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_the_gradient_is_that_of_finite_differences() -> None:
    norm = BatchNorm(3).double()
    x = random_features(7, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w, b: _apply(norm, x, w, b), (x, norm.weight, norm.bias))


def _apply(norm: BatchNorm, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))


def test_the_number_of_threads_changes_no_bit() -> None:
    x = random_features(20_000, 16, dtype=torch.float32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            norm, leaf = BatchNorm(16), x.clone().requires_grad_()
            out = norm(leaf)
            (out * out.detach().cos()).sum(dim=0).sum().backward()
            assert leaf.grad is not None and norm.weight.grad is not None
            found.append([out.detach(), leaf.grad, norm.weight.grad, *norm.state_dict().values()])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("shape", [(64, 3), (2, 5, 7)])
def test_glorot_is_bounded_by_the_last_two_sizes(shape: tuple[int, ...]) -> None:
    weight, expected = torch.empty(shape), torch.empty(shape)
    torch.manual_seed(0)
    glorot(weight)
    torch.manual_seed(0)
    bound = (6.0 / (shape[-2] + shape[-1])) ** 0.5
    nn.init.uniform_(expected, -bound, bound)
    torch.testing.assert_close(weight, expected)


def test_a_linear_map_has_a_bias_by_default() -> None:
    assert Linear(3, 2).bias is not None and Linear(3, 2, bias=False).bias is None
