"""Jaccard similarity of an edge's ends, against sets of Python."""

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.pruning import alike, edge_jaccard
from conjoint.graph.sparse import to_csr


def words() -> torch.Tensor:
    rng = np.random.default_rng(2)
    return torch.from_numpy((rng.random((30, 12)) * (rng.random((30, 12)) < 0.3)).astype(np.float32))


def test_the_similarity_is_that_of_the_sets_of_words() -> None:
    x = words()
    x[0] = 0.0
    edges = torch.from_numpy(np.random.default_rng(3).integers(0, 30, (2, 200)))
    sets = [set(np.flatnonzero(row)) for row in x.numpy()]
    expected = [len(sets[i] & sets[j]) / max(len(sets[i] | sets[j]), 1) for i, j in edges.t().tolist()]
    torch.testing.assert_close(edge_jaccard(x, edges), torch.tensor(expected))
    torch.testing.assert_close(edge_jaccard(to_csr(x.numpy()), edges), torch.tensor(expected))
    assert torch.equal(alike(x, edges, 0.2), torch.tensor(expected) >= 0.2)


def test_a_graph_without_edges_has_no_similarities() -> None:
    assert edge_jaccard(words(), torch.zeros(2, 0, dtype=torch.long)).shape == (0,)


def test_features_without_a_zero_are_refused() -> None:
    with pytest.raises(InputError, match="none is zero"):
        alike(torch.ones(4, 3), torch.tensor([[0], [1]]), 0.01)
