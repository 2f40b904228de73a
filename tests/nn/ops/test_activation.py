import pytest
import torch

from conjoint.nn import ops
from conjoint.nn.ops import keep_mask
from conjoint.nn.ops.activation import mask_of
from kernel_cases import check, numbers

SEED = torch.tensor([987654321987654321])


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize("dropout", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (300, 65), (50_001, 1)])
def test_activation_then_dropout(shape: tuple[int, int], dropout: float, activation: str) -> None:
    check(lambda x: ops.activate_and_drop(x, activation, dropout, SEED), 3 * numbers(*shape, seed=1))


def test_elu_far_below_and_near_zero() -> None:
    x = torch.tensor([-1e30, -200.0, -1e-4, -1e-9, 0.0, 1e-9, 50.0, 1e30], dtype=torch.float64)
    check(lambda x: ops.activate_and_drop(x, "elu", 0.0, None), x)


def test_mask_of_the_kernel_is_the_mask_of_the_definition() -> None:
    for seed in (torch.tensor([0]), torch.tensor([2**62 - 1]), SEED):
        found = ops.drop(torch.ones(100_000), 0.37, seed) != 0
        assert torch.equal(found, keep_mask(seed, 100_000, 0.37))


def test_share_of_dropped_places() -> None:
    kept = (ops.drop(torch.ones(1_000_000), 0.6, SEED) != 0).double().mean()
    assert abs(float(kept) - 0.4) < 0.002


def test_what_kernels_are_told_of_a_dropout() -> None:
    assert mask_of(0.0, SEED) == mask_of(-1.0, SEED) == mask_of(0.5, None) == (None, 0, 1.0)
    assert mask_of(0.25, SEED) == (SEED, 2**30, 1.0 / 0.75)
    assert mask_of(1.0, SEED) == (SEED, 2**32 - 1, 0.0)
