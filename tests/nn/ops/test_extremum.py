"""The largest value among neighbours: against a loop over nodes, and its gradient."""

import pytest
import torch

from conjoint.graph.adjacency import adjacency
from conjoint.nn.ops import extremum, neighbour_max
from graphs import ALL, KITE, random_features, random_graph


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("messages", [1, 1 << 20])
def test_equals_a_loop(name: str, loops: bool, messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremum, "MESSAGES", messages)  # one channel at a time, or all at once
    edges, nodes = ALL[name]
    graph, x = adjacency(edges, nodes, self_loops=loops), random_features(nodes, 5)
    found = neighbour_max(graph, x)
    for i in range(nodes):
        near = x[graph.col[graph.row == i]]
        assert torch.equal(found[i], near.max(dim=0).values if len(near) else torch.zeros(5).double())


def test_gradient() -> None:
    edges, nodes = random_graph(12, 30)
    graph = adjacency(edges, nodes)
    x = random_features(nodes, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: neighbour_max(graph, x), (x,))


def test_of_equal_neighbours_the_first_takes_the_gradient() -> None:
    graph = adjacency(torch.tensor([[0, 1, 2], [3, 3, 3]]), 4, self_loops=False)
    x = torch.ones(4, 2, requires_grad=True)
    neighbour_max(graph, x)[3].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_who_hears_nobody_gives_no_gradient() -> None:
    adj = adjacency(*KITE, self_loops=False)
    x = random_features(5, 2).requires_grad_()
    found = neighbour_max(adj, x)
    assert found[4].tolist() == [0.0, 0.0]
    found.sum().backward()
    expected = torch.zeros(5, 2, dtype=torch.float64)
    for node in range(4):
        near = adj.col[adj.row == node]
        for k in range(2):
            expected[near[x[near, k].argmax()], k] += 1.0
    assert x.grad is not None and torch.equal(x.grad, expected)
