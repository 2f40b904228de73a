"""Sums and scalings of rows in kept memory: torch's own, with its bits."""

import torch
from torch import Tensor

from conjoint.kernels import kept_memory
from conjoint.nn import ops
from kernel_cases import check, numbers, outcome

SHAPES = [(50, 8), (3000, 64)]


def test_a_sum_and_an_affine_map_have_the_bits_of_torch() -> None:
    for rows, channels in SHAPES:
        inputs = [
            numbers(*shape, seed=k, dtype=torch.float32) for k, shape in enumerate(((rows, channels),) * 2)
        ]
        vectors = [numbers(channels, seed=k, dtype=torch.float32) for k in (3, 4)]
        for operation, plain, given in (
            (ops.add, torch.add, inputs),
            (ops.affine, _plain_affine, [inputs[0], *vectors]),
        ):
            with kept_memory():
                found = outcome(operation, given, fast=True)
            expected = outcome(plain, given, fast=True)
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_one_tensor_on_both_sides() -> None:
    check(lambda x: ops.add(x, x), numbers(40, 8, seed=1))


def test_what_is_kept_is_not_written_over() -> None:
    x = numbers(5000, 64, seed=1, dtype=torch.float32).requires_grad_()
    with kept_memory():
        first = ops.add(x, x)
        before = first.detach().clone()
        for _ in range(3):
            ops.affine(ops.add(x, first), x[0].detach(), x[1].detach()).sum().backward()
        assert torch.equal(first, before)


def _plain_affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addcmul(bias, x, weight)
