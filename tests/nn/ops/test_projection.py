import pytest
import torch
from torch import Tensor

from conjoint.graph.sparse import csr_tensor
from conjoint.kernels.library import WIDE_PRODUCTS
from conjoint.nn import ops
from conjoint.threads import steady_products
from kernel_cases import check, numbers, outcome

SEED = torch.tensor([2**61 + 12345])


def sparse(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    dense = numbers(rows, columns, seed=1, dtype=dtype)
    dense = dense * (numbers(rows, columns, seed=2) > 0.8)
    dense[rows // 2] = 0
    if rows > 2 and columns > 600:
        dense[1] = 1  # a row longer than any buffer
    flat = dense.to_sparse_coo()
    crow = torch.cat(
        [torch.zeros(1, dtype=torch.long), torch.bincount(flat.indices()[0], minlength=rows).cumsum(0)]
    )
    return csr_tensor(crow, flat.indices()[1], flat.values(), (rows, columns))


@pytest.mark.parametrize("out", [1, 7, 32, 64, 65, 150])
@pytest.mark.parametrize("shape", [(50, 700), (1, 3), (300, 31), (2, 1)])
@pytest.mark.parametrize("dropout", [0.0, 0.6])
def test_sparse_features_times_weight(shape: tuple[int, int], out: int, dropout: float) -> None:
    def project(weight: Tensor) -> Tensor:
        return ops.sparse_project(sparse(*shape, weight.dtype), weight, dropout, SEED)

    check(project, numbers(out, shape[1], seed=3))


@pytest.mark.parametrize("out", [7, 64, 150])
def test_few_rows_of_the_product_count(out: int) -> None:
    x = sparse(50, 700, torch.float64)
    check(
        lambda weight: ops.sparse_project(x.to(weight.dtype), weight, 0.6, SEED)[3:9],
        numbers(out, 700, seed=3),
    )


def test_dropout_inside_equals_dropout_before() -> None:
    x, weight = sparse(40, 60, torch.float64), numbers(5, 60, seed=3)
    inside = ops.sparse_project(x, weight, 0.5, SEED)
    torch.testing.assert_close(
        inside, ops.sparse_project(ops.drop(x, 0.5, SEED), weight), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(1, 1, 1), (500, 8, 8), (700, 3, 33), (100, 1, 7), (3, 16, 40)])
def test_head_dots(shape: tuple[int, int, int]) -> None:
    x, first, second = numbers(*shape, seed=1), numbers(*shape[1:], seed=2), numbers(*shape[1:], seed=3)
    check(ops.head_dot, x, first)
    check(ops.head_dots, x, first, second)


def test_only_one_of_two_results_is_used() -> None:
    x, first, second = numbers(90, 2, 5, seed=1), numbers(2, 5, seed=2), numbers(2, 5, seed=3)
    check(lambda *inputs: ops.head_dots(*inputs)[1], x, first, second)
    check(lambda *inputs: ops.head_dots(*inputs)[0], x, first, second)


@pytest.mark.parametrize("shape", [(300, 64, 64), (40, 16, 33), (300, 200, 20), (300, 7, 64), (8, 64, 64)])
def test_a_dense_map_has_the_bits_of_torch(shape: tuple[int, int, int]) -> None:
    rows, width, out = shape
    inputs = [
        numbers(*sizes, seed=seed, dtype=torch.float32)
        for seed, sizes in enumerate([(rows, width), (out, width), (out,)])
    ]
    with steady_products(rows):
        fast = outcome(ops.dense_linear, inputs, fast=True)
        plain = outcome(torch.nn.functional.linear, inputs, fast=True)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-4) for a, b in zip(fast, plain, strict=True))
    if WIDE_PRODUCTS:
        assert all(torch.equal(a, b) for a, b in zip(fast, plain, strict=True))
