"""Edges in any state come out undirected, once, sorted, with the right weights."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from conjoint.graph.adjacency import tidy_edges
from conjoint.graph.sparse import SPARSE_BELOW, pack_features

edge_lists = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=40
)


@given(edge_lists, st.booleans())
def test_edges_equal_a_dictionary_made_by_hand(edges: list[tuple[int, int, int]], weighted: bool) -> None:
    one_way: dict[tuple[int, int], float] = {}
    for a, b, w in edges:
        if a != b:
            one_way[a, b] = one_way.get((a, b), 0) + w
    expected: dict[tuple[int, int], float] = {}
    for (a, b), total in one_way.items():
        expected[a, b] = expected[b, a] = max(total, one_way.get((b, a), total))
    source, target, weight = (np.array(column) for column in zip(*edges, strict=True))
    index, values = tidy_edges(source, target, 6, weight if weighted else None, [])
    pairs = [tuple(pair) for pair in index.T.tolist()]
    assert pairs == sorted(expected)
    if weighted:
        assert values is not None and dict(zip(pairs, values.tolist(), strict=True)) == expected
    else:
        assert values is None


def test_what_was_done_is_noted_once() -> None:
    notes: list[str] = []
    tidy_edges(np.array([0, 0, 1, 2, 2]), np.array([1, 1, 0, 2, 0]), 3, None, notes)
    assert notes == [
        "dropped 1 self-loop (layers add their own)",
        "dropped 1 duplicate edge",
        "made undirected: 2 edges became 4 entries",
    ]
    notes.clear()
    tidy_edges(np.array([0, 1]), np.array([1, 0]), 2, None, notes)
    assert notes == []


def test_the_caller_keeps_its_arrays() -> None:
    source, target = np.array([2, 0, 1]), np.array([1, 2, 0])
    tidy_edges(source, target, 3, None, [])
    assert source.tolist() == [2, 0, 1] and target.tolist() == [1, 2, 0]


def test_features_are_sparse_where_it_pays() -> None:
    thin, thick = np.zeros((10, 100)), np.ones((10, 100))
    thin[0, 0] = 1
    assert SPARSE_BELOW > 0.1002  # PubMed
    assert pack_features(thin, "auto").layout == torch.sparse_csr
    assert pack_features(thick, "auto").layout == torch.strided
    assert pack_features(thin, False).layout == torch.strided
    assert pack_features(pack_features(thick, True), "auto").layout == torch.strided
