from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.estimator.graphs import (
    NodeGraph,
    joined_by_matrix,
    joined_by_nearest,
    means_over_equals,
    nearest_graph,
    read_graph,
    row_keys,
)
from conjoint.graph.sparse import is_sparse, pack_features
from graphs import KITE

EDGES, NODES = KITE
X = torch.zeros(NODES, 1)
MATRIX = sp.csr_array((np.ones(EDGES.size(1)), EDGES.numpy()), shape=(NODES, NODES))
ONE_WAY = EDGES[:, EDGES[0] < EDGES[1]]
FORMS: dict[str, Any] = {
    "csr array": MATRIX,
    "csr matrix": sp.csr_matrix(MATRIX),
    "coo of bools": sp.coo_matrix(MATRIX.astype(bool)),
    "upper triangle": sp.triu(MATRIX),
    "dense": MATRIX.toarray(),
    "sliceable": NodeGraph(MATRIX),
    "torch edge index": EDGES,
    "numpy edge index": EDGES.numpy(),
    "each edge once": ONE_WAY,
    "lists": EDGES.tolist(),
    "torch sparse": torch.sparse_coo_tensor(EDGES, torch.ones(8), (NODES, NODES), check_invariants=True),
    "pyg data": Data(edge_index=EDGES, num_nodes=NODES),
    "networkx": nx.from_scipy_sparse_array(MATRIX),
    "self-loops": torch.cat([EDGES, torch.tensor([[2], [2]])], dim=1),
}


def pairs(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in edge_index.t()}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same_graph(form: str) -> None:
    graph = read_graph(FORMS[form], X)
    assert pairs(graph.edge_index) == pairs(EDGES)
    assert graph.edge_index.size(1) == EDGES.size(1)
    assert graph.edge_weight is None
    assert graph.node_ids.tolist() == list(range(NODES))


def test_values_other_than_one_are_weights() -> None:
    weighted = MATRIX.copy()
    weighted.data = np.where(weighted.tocoo().row + weighted.tocoo().col == 1, 3.0, 1.0)
    for form in (weighted, nx.from_scipy_sparse_array(weighted), weighted.toarray()):
        graph = read_graph(form, X)
        assert graph.edge_weight is not None
        strength = dict(
            zip(map(tuple, graph.edge_index.t().tolist()), graph.edge_weight.tolist(), strict=True)
        )
        assert strength[(0, 1)] == strength[(1, 0)] == 3.0
        assert strength[(1, 2)] == 1.0


def test_networkx_nodes_find_their_rows() -> None:
    shuffled = nx.Graph([(3, 2), (2, 0), (1, 0), (2, 1)])
    shuffled.add_node(4)
    assert list(shuffled.nodes) != sorted(shuffled.nodes)
    assert pairs(read_graph(shuffled, X).edge_index) == pairs(EDGES)

    named = nx.relabel_nodes(shuffled, dict(enumerate("abcde")))
    by_index = read_graph(named, X, pd.Index(list("abcde")))
    assert pairs(by_index.edge_index) == pairs(EDGES)
    assert by_index.node_ids.tolist() == list("abcde")

    by_insertion = read_graph(named, X)
    assert by_insertion.node_ids.tolist() == list(named.nodes)
    assert (0, 1) in pairs(by_insertion.edge_index)  # the first edge that was added: d - c


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (MATRIX[:3], "a square matrix"),
        (MATRIX[:, :3], "NodeGraph"),
        (-MATRIX, "above 0"),
        (MATRIX * np.nan, "above 0"),
        (EDGES + 2, "names node 5"),
        (EDGES - 1, "names node -1"),
        (EDGES.double(), "integer edge index"),
        ("knn", "NetworkX"),
        (nx.path_graph(3), "3 nodes"),
    ],
)
def test_a_bad_graph_is_refused_with_the_remedy(graph: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_graph(graph, X)


def test_a_slice_keeps_the_edges_among_its_nodes() -> None:
    part = NodeGraph(MATRIX)[np.array([2, 3, 0]), ...]
    assert len(part) == 3
    assert part.matrix.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    with pytest.raises(InputError, match="square"):
        NodeGraph(MATRIX[:3])


def test_nearest_neighbours_on_a_line() -> None:
    x = torch.tensor([[0.0], [1.0], [2.1], [10.0]])
    graph = nearest_graph(x, 1, "euclidean")
    assert pairs(graph.edge_index) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert nearest_graph(x, 50, "euclidean").edge_index.size(1) == 12  # everybody, when so many are asked for
    assert nearest_graph(x[:1], 3, "euclidean").edge_index.size(1) == 0
    joint = joined_by_nearest(graph, torch.tensor([[9.0], [0.4]]), 1, "euclidean")
    assert pairs(joint.edge_index) - pairs(graph.edge_index) == {(3, 4), (0, 5)}  # from known to new alone
    assert joint.x.flatten().tolist() == [*x.flatten().tolist(), 9.0, *torch.tensor([0.4]).tolist()]
    with pytest.raises(InputError, match="n_neighbors=0"):
        nearest_graph(x, 0, "euclidean")


@pytest.mark.parametrize("sparse", [False, True])
def test_links_to_training_nodes_and_to_each_other(sparse: bool) -> None:
    known = read_graph([[0], [2]], pack_features(np.eye(5)[:3], sparse))
    matrix = sp.csr_array(np.array([[0, 2.0, 0, 0, 1], [1, 0, 0, 0, 0]]))  # 2 new nodes, 3 training nodes
    joint = joined_by_matrix(known, pack_features(np.eye(5)[3:], sparse), matrix)
    assert pairs(joint.edge_index) == {(0, 2), (2, 0), (1, 3), (0, 4), (3, 4), (4, 3)}
    assert joint.edge_weight is not None
    weight = dict(zip(map(tuple, joint.edge_index.t().tolist()), joint.edge_weight.tolist(), strict=True))
    assert weight == dict.fromkeys(weight, 1.0) | {(1, 3): 2.0}
    assert joint.x.to_dense().equal(torch.eye(5)) and is_sparse(joint.x) == sparse


ROWS = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=np.float32)


def test_keys_follow_the_numbers_not_their_storage() -> None:
    explicit_zero = sp.csr_array((ROWS.ravel(), np.tile([0, 1], 4), [0, 2, 4, 6, 8]), shape=(4, 2))
    negative_zero = np.where(ROWS == 0, np.float32(-0.0), ROWS)
    keys = row_keys(ROWS)
    assert keys == row_keys(sp.csr_matrix(ROWS)) == row_keys(explicit_zero) == row_keys(negative_zero)
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


def test_the_place_of_a_number_counts() -> None:
    assert row_keys(np.array([[1.0, 0.0]])) != row_keys(np.array([[0.0, 1.0]]))


def test_chunks_leave_no_seam() -> None:
    x = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    assert row_keys(x)[4090:4100] == row_keys(x[4090:4100])


def test_twins_share_the_mean_of_their_answers() -> None:
    answers = np.array([[1.0], [5.0], [3.0], [7.0]], dtype=np.float32)
    asked = np.array([[0.0, 1.0], [9.0, 9.0], [2.0, 0.0]])
    means = means_over_equals(row_keys(asked), row_keys(ROWS))
    assert (means @ answers).ravel().tolist() == [2.0, 0.0, 5.0]
    assert np.diff(means.indptr).tolist() == [2, 0, 1]


@pytest.mark.parametrize("kind", ["pairs", "rows", "pandas", "polars", "weighted"])
def test_edges_as_pairs_and_tables(kind: str) -> None:
    links = EDGES.t().tolist()
    given: Any = [tuple(pair) for pair in links]
    if kind == "rows":
        given = EDGES.t().numpy()
    elif kind != "pairs":
        table = {"from": [i for i, _ in links], "to": [j for _, j in links], "since": 1999}
        table |= {"weight": [1.0 + i + j for i, j in links]} if kind == "weighted" else {}
        given = pl.DataFrame(table) if kind == "polars" else pd.DataFrame(table)
    found = read_graph(given, X)
    expected = read_graph(EDGES, X)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert (found.edge_weight is not None) == (kind == "weighted")


def test_names_in_pairs_and_tables_are_those_of_the_index() -> None:
    names = ["d", "c", "b", "a", "e"]
    links = [tuple(names[k] for k in pair) for pair in EDGES.t().tolist()]
    for given in (links, pd.DataFrame(links), pl.DataFrame(links, schema=["u", "v"], orient="row")):
        found = read_graph(given, X, pd.Index(names))
        assert torch.equal(found.edge_index, read_graph(EDGES, X).edge_index)
    with pytest.raises(InputError, match="an edge names node 'x', but the index of X has none"):
        read_graph([("a", "x"), ("a", "b"), ("b", "c")], X, pd.Index(names))
    with pytest.raises(InputError, match="an edge names node 'a', but X has rows 0 to 4"):
        read_graph([("a", "b")], X)
    with pytest.raises(InputError, match="names a row twice"):
        read_graph([("a", "b")], X, pd.Index(["a", "a", "b", "c", "d"]))
    with pytest.raises(InputError, match="edges need two, source and target"):
        read_graph(pd.DataFrame({"source": [0]}), X)


def test_two_lists_are_an_edge_index_and_two_tuples_are_pairs() -> None:
    assert pairs(read_graph([[0, 2], [1, 3]], X).edge_index) >= {(0, 1), (2, 3)}
    assert pairs(read_graph([(0, 2), (1, 3)], X).edge_index) >= {(0, 2), (1, 3)}
