"""Random graphs of awkward shapes; the comparison of a compiled kernel with its definition in torch."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import torch
from torch import Tensor

from conjoint import kernels
from conjoint.graph.adjacency import Adjacency, adjacency

Operation = Callable[..., Tensor | tuple[Tensor, ...]]


def random_graph(nodes: int, edges: int, seed: int, *, self_loops: bool = True) -> Adjacency:
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(max(nodes, 1), (2, edges), generator=generator)
    return adjacency(ends, nodes, self_loops=self_loops)


def rectangular_graph(sources: int, targets: int, edges: int, seed: int) -> Adjacency:
    """Targets are the first of the sources, as in the receptive field of some nodes."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(sources, (edges,), generator=generator)
    dst = torch.randint(targets, (edges,), generator=generator)
    return adjacency(torch.stack([src, dst]), (sources, targets), self_loops=False)


def hub_graph(degree: int, *, hub_is: str) -> Adjacency:
    """One node that is the target, or the source, of an edge with every other."""
    leaves = torch.arange(1, degree + 1)
    hub = torch.zeros_like(leaves)
    return adjacency(torch.stack([leaves, hub] if hub_is == "target" else [hub, leaves]), degree + 1)


GRAPHS: dict[str, Callable[[], Adjacency]] = {
    "random": lambda: random_graph(200, 1500, 0),
    "isolated": lambda: random_graph(300, 40, 1, self_loops=False),
    "parallel edges": lambda: random_graph(6, 200, 2),
    "one node": lambda: random_graph(1, 0, 3),
    "one node, no loop": lambda: random_graph(1, 0, 4, self_loops=False),
    "no nodes": lambda: random_graph(0, 0, 5, self_loops=False),
    "rectangular": lambda: rectangular_graph(400, 60, 900, 6),
    "hub as target": lambda: hub_graph(3000, hub_is="target"),
    "hub as source": lambda: hub_graph(3000, hub_is="source"),
}


def numbers(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def outcome(operation: Operation, inputs: Iterable[Tensor | None], *, fast: bool) -> list[Tensor]:
    """Results and gradients of a fixed weighting of the results, for the inputs that are floating point."""
    fresh = [None if t is None else t.detach().clone().requires_grad_(t.is_floating_point()) for t in inputs]
    with nullcontext() if fast else kernels.disabled():
        results = operation(*fresh)
        results = (results,) if isinstance(results, Tensor) else tuple(results)
        weighted = [
            (result * numbers(*result.shape, seed=100 + place, dtype=result.dtype)).sum()
            for place, result in enumerate(results)
        ]
        learned = [t for t in fresh if t is not None and t.requires_grad]
        gradients = torch.autograd.grad(sum(weighted, torch.zeros(())), learned, allow_unused=True)
    return [r.detach() for r in results] + [
        torch.zeros_like(t) if g is None else g for t, g in zip(learned, gradients, strict=True)
    ]


def check(operation: Operation, *inputs: Tensor | None) -> None:
    """The kernels in both precisions against the definition in double precision, gradients included."""
    assert kernels.active(), kernels.status()["reason"]
    truth = outcome(operation, inputs, fast=False)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        cast = [t if t is None or not t.is_floating_point() else t.to(dtype) for t in inputs]
        for place, (found, wanted) in enumerate(zip(outcome(operation, cast, fast=True), truth, strict=True)):
            assert found.dtype == dtype
            assert found.shape == wanted.shape
            if wanted.numel() == 0:
                continue
            size = max(1.0, float(wanted.abs().max()))
            error = float((found.double() - wanted).abs().max())
            assert error <= tolerance * size, (
                f"{dtype}: result {place} differs by {error:.2e} at size {size:.2e}"
            )
