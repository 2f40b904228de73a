"""Graphs so large that a 32-bit index or a sum in single precision would show.

The plain definitions would need gigabytes here, so rows are compared with what is known of them: the weights
of a target sum to one, and a row depends on its own neighbourhood alone.
"""

import pytest
import torch
from torch import Tensor

from conjoint import kernels
from conjoint.graph.adjacency import Adjacency, adjacency
from conjoint.nn import ops
from kernel_cases import hub_graph, numbers, random_graph

F32 = torch.float32


def _layer(adj: Adjacency, h: Tensor, att: Tensor, v: Tensor) -> Tensor:
    scores = ops.edge_softmax(adj, ops.edge_dot(adj, v[: adj.num_dst], v))
    mix = torch.full((h.size(1), 2), 0.5)
    return ops.attend(adj, h, att[0], att[1], None, scores, mix, torch.full((h.size(1),), 0.3), 0.2)


@pytest.mark.parametrize("hub_is", ["target", "source"])
def test_a_hub_of_a_million(hub_is: str) -> None:
    adj = hub_graph(1_000_000, hub_is=hub_is)
    ones = torch.ones(adj.num_src, 2, 3, requires_grad=True)
    att, v = numbers(2, 2, 3, seed=1, dtype=F32), torch.zeros(adj.num_src, 2)
    out = _layer(adj, ones, att, v)
    own = torch.tensor(0.3).sigmoid() / adj.degree.float().view(-1, 1, 1)
    torch.testing.assert_close(out, (1.0 + own).expand_as(out), rtol=1e-5, atol=1e-5)
    out.sum().backward()
    assert ones.grad is not None
    # What leaves the sources arrives at the targets: the total of the gradient is that of the result.
    torch.testing.assert_close(ones.grad.double().sum(), out.detach().double().sum(), rtol=1e-5, atol=0.0)


def test_a_graph_of_ten_million_edges() -> None:
    adj = random_graph(500_000, 10_000_000, 3)
    assert adj.num_entries > 10_000_000
    h, att = numbers(500_000, 8, 4, seed=1, dtype=F32), numbers(2, 8, 4, seed=2, dtype=F32)
    v = 0.1 * numbers(500_000, 3, seed=4, dtype=F32)
    out = _layer(adj, h, att, v)
    for first in (0, 499_990):  # the first rows and the last, by the plain definitions
        begin, end = int(adj.rowptr[first]), int(adj.rowptr[first + 10])
        targets, sources = adj.row[begin:end] - first, adj.col[begin:end]
        nodes = sources.unique()
        rest = nodes[(nodes < first) | (nodes >= first + 10)]
        order = torch.cat([torch.arange(first, first + 10), rest])
        where = {int(node): k for k, node in enumerate(order)}
        src = torch.tensor([where[int(node)] for node in sources])
        part = adjacency(torch.stack([src, targets]), (order.numel(), 10), self_loops=False)
        with kernels.disabled():
            expected = _layer(part, h[order], att, v[order])
        torch.testing.assert_close(out[first : first + 10], expected, rtol=1e-4, atol=1e-5)
