"""Edges sorted by target: order, self-loops, parallel edges, bad ids."""

import copy
import pickle

import pytest
import torch
from torch_geometric import EdgeIndex

from conjoint import InputError, adjacency
from conjoint.graph.adjacency import MEMO, Adjacency
from graphs import ALL, KITE, MESSY, random_graph


def pairs(adj: Adjacency) -> set[tuple[int, int]]:
    return set(zip(adj.col.tolist(), adj.row.tolist(), strict=True))


@pytest.mark.parametrize("name", ALL)
def test_every_node_has_one_self_loop(name: str) -> None:
    edges, n = ALL[name]
    adj = adjacency(edges, n)
    assert int((adj.row == adj.col).sum()) == n
    assert torch.equal(adj.degree, torch.bincount(adj.row, minlength=n))
    proper = {(int(s), int(t)) for s, t in edges.t() if s != t}
    assert pairs(adj) == proper | {(i, i) for i in range(n)}


def test_entries_are_sorted_and_trace_back_to_the_users_edges() -> None:
    edges, n = random_graph(30, 120, undirected=False)
    adj = adjacency(edges, n)
    assert bool((adj.row.diff() >= 0).all())
    assert torch.equal(adj.edge_index[:, : edges.size(1)], edges)
    assert torch.equal(adj.edge_index[:, edges.size(1) :], torch.arange(n).repeat(2, 1))
    marks = torch.arange(adj.num_entries)
    assert torch.equal(adj.to_user_order(marks[adj.perm]), marks)


def test_user_tensors_follow_the_edges_when_self_loops_are_replaced() -> None:
    edges, n = MESSY
    adj = adjacency(edges, n)
    assert adj.num_edges == edges.size(1)
    values = torch.arange(1.0, 1.0 + edges.size(1))
    loops = torch.full((n,), -1.0)
    entries = adj.from_user_order(values, loops)
    for value, col, row in zip(entries.tolist(), adj.col.tolist(), adj.row.tolist(), strict=True):
        if col == row:
            assert value == -1.0
        else:
            source, target = edges[:, int(value) - 1].tolist()
            assert (source, target) == (col, row)


def test_parallel_edges_stay_but_count_once_in_a() -> None:
    edges, n = MESSY
    adj = adjacency(edges, n)
    assert int(((adj.col == 0) & (adj.row == 1)).sum()) == 2
    assert int(adj.simple.sum()) == 4


def test_transposed_order_holds_the_same_entries() -> None:
    edges, n = random_graph(20, 60, undirected=False)
    adj = adjacency(edges, n)
    back = adj.transposed
    assert torch.equal(adj.row[back.perm], back.row)
    assert bool((adj.col[back.perm].diff() >= 0).all())
    assert torch.equal(back.rowptr.diff(), torch.bincount(adj.col, minlength=n))


def test_edge_index_class_and_sparse_layouts_mean_the_same_graph() -> None:
    edges, n = random_graph(12, 30, undirected=False)
    expected = pairs(adjacency(edges, n))
    assert pairs(adjacency(EdgeIndex(edges, sparse_size=(n, n)), n)) == expected
    coo = torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.size(1)), (n, n), check_invariants=True)
    assert pairs(adjacency(coo, n)) == expected


def test_flow_from_target_to_source_swaps_the_roles() -> None:
    edges, n = MESSY
    assert pairs(adjacency(edges, n, flow="target_to_source")) == pairs(adjacency(edges.flip(0), n))


def test_empty_edge_set_leaves_only_self_loops() -> None:
    adj = adjacency(torch.empty(2, 0, dtype=torch.long), 3)
    assert pairs(adj) == {(0, 0), (1, 1), (2, 2)}
    bare = adjacency(torch.empty(2, 0, dtype=torch.long), 3, self_loops=False)
    assert bare.num_entries == 0 and bare.num_dst == 3


@pytest.mark.parametrize(
    ("edges", "nodes", "words"),
    [
        (torch.tensor([[0, 5], [1, 0]]), 5, "source id 5 is out of range for 5 nodes"),
        (torch.tensor([[0, 1], [1, -1]]), 5, "target id -1"),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 5, "integer node ids"),
        (torch.tensor([0, 1, 2]), 5, "shape"),
        (KITE[0], (5, 7), "add_self_loops=False"),
    ],
)
def test_bad_edges_are_named(edges: torch.Tensor, nodes: int | tuple[int, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        adjacency(edges, nodes)


def test_a_prepared_graph_must_fit_the_features() -> None:
    adj = adjacency(*KITE)
    with pytest.raises(InputError, match="5 sources"):
        adjacency(adj, 6)


def test_what_the_edges_decide_is_made_once_and_not_copied() -> None:
    adj = adjacency(*KITE)
    thinned, made = adj.without(adj.row != adj.col), []
    for graph in (adj, thinned, adj, thinned):
        assert graph.once("key", lambda: made.append(1)) is None
    assert len(made) == 1
    for twin in (copy.deepcopy(adj), pickle.loads(pickle.dumps(adj))):  # noqa: S301
        twin.once("key", lambda: made.append(1))
    assert len(made) == 3


def test_no_more_than_a_few_results_are_kept() -> None:
    adj = adjacency(*KITE)
    for key in range(MEMO + 5):
        assert adj.once(key, lambda: key) == key  # noqa: B023
    assert adj.once(0, lambda: "again") == "again" and adj.once(MEMO, lambda: "again") == MEMO
