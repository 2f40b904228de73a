"""Dense features that are mostly zeros, and the products with wide vectors."""

import gc
import weakref

import pytest
import torch

from conjoint import CAT, CATConv, kernels
from conjoint.graph.sparse import is_sparse
from conjoint.nn import ops
from conjoint.nn.ops.projection import multiply


def mostly_zero(rows: int = 1024, columns: int = 256, share: float = 0.05) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, columns, generator=generator)
    return x * (torch.rand(rows, columns, generator=generator) < share)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_non_zeros_are_found_and_kept_as_long_as_the_tensor_is_not_changed(compiled: bool) -> None:
    x = mostly_zero()
    if compiled:
        found = ops.without_zeros(x)
    else:
        with kernels.disabled():
            found = ops.without_zeros(x)
    assert is_sparse(found) and torch.equal(found.to_dense(), x)
    assert ops.without_zeros(x) is found
    x[3, 5] = 7.0
    changed = ops.without_zeros(x)
    assert changed is not found and torch.equal(changed.to_dense(), x)
    x.fill_(1.0)
    assert ops.without_zeros(x) is x


def test_they_do_not_keep_the_tensor_alive() -> None:
    x = mostly_zero()
    alive = weakref.ref(x)
    packed = weakref.ref(ops.without_zeros(x))
    del x
    gc.collect()
    assert alive() is None and packed() is None


def test_other_tensors_stay_as_they_are() -> None:
    for x in (mostly_zero(share=0.5), mostly_zero(16), mostly_zero().requires_grad_(), mostly_zero().half()):
        assert ops.without_zeros(x) is x


def test_a_network_gives_the_same_for_dense_and_for_sparse_storage() -> None:
    x, edges = mostly_zero(), torch.randint(1024, (2, 4000), generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    model, layer = CAT(256, 8, 5), CATConv(256, 8, 8)
    stored = x.to_sparse_csr()
    for call in (lambda x: model(x, edges), lambda x: layer(x, edges)):
        found = []
        for given in (x, stored):
            torch.manual_seed(1)
            found.append(call(given))
        assert torch.equal(*found)
    with torch.no_grad():
        dense = layer.eval()(x.clone().requires_grad_(), edges)
    torch.testing.assert_close(layer(x, edges), dense)


@pytest.mark.parametrize(
    "shape", [(40, 64, 64), (500, 300, 200), (1001, 37, 41), (64, 1433, 16), (24, 193, 96)]
)
def test_products_are_those_of_torch(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    torch.manual_seed(0)
    x, w, g = torch.randn(rows, depth), torch.randn(columns, depth), torch.randn(rows, columns)
    for a, b in ((x, w.t()), (g.t(), x), (g, w)):
        torch.testing.assert_close(multiply(a, b).double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
