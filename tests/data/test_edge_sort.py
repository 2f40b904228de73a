"""Edges into CSR through buckets: what an in-memory sort would give, whatever the cuts."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from conjoint.data import edge_sort
from conjoint.data.edge_sort import bucket_bounds, write_csr
from conjoint.graph.adjacency import tidy_edges

Ends = npt.NDArray[np.int64]


def expected(one: Ends, other: Ends, nodes: int) -> tuple[Ends, Ends]:
    """Rows and columns of the symmetric adjacency matrix, by NumPy alone."""
    full = np.zeros((nodes, nodes), dtype=bool)
    full[one, other] = full[other, one] = True
    np.fill_diagonal(full, False)
    row, col = np.nonzero(full)
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))]), col


@pytest.mark.parametrize("bucket", [1, 7, 50, 1 << 23])
def test_any_cut_into_buckets_gives_the_same_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int
) -> None:
    monkeypatch.setattr(bucket_bounds, "__defaults__", (bucket,))
    monkeypatch.setattr(edge_sort, "PIECE", 11)
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 40, (2, 300))
    other[:5] = one[:5]  # self-loops
    pieces = [(one[k : k + 64], other[k : k + 64], None) for k in range(0, 300, 64)]
    made = write_csr(pieces, 40, tmp_path)
    rowptr, col = expected(one, other, 40)
    assert np.array_equal(made.rowptr, rowptr)
    assert np.array_equal(np.load(tmp_path / "col.npy"), col)
    assert made.loops == int((one == other).sum())
    assert made.repeated == 300 - made.loops - len(col) // 2
    assert [path.name for path in tmp_path.iterdir()] == ["col.npy"]  # no temporary file stays


@pytest.mark.parametrize("bucket", [1, 7, 1 << 23])
def test_weights_are_joined_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int
) -> None:
    monkeypatch.setattr(bucket_bounds, "__defaults__", (bucket,))
    monkeypatch.setattr(edge_sort, "PIECE", 11)
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 12, (2, 300))
    weight = rng.random(300)
    pieces = [(one[k : k + 64], other[k : k + 64], weight[k : k + 64]) for k in range(0, 300, 64)]
    write_csr(pieces, 12, tmp_path, weighted=True)
    edge_index, expected = tidy_edges(one, other, 12, weight, [])
    assert np.array_equal(np.load(tmp_path / "col.npy"), edge_index[1].numpy())
    assert expected is not None and np.array_equal(np.load(tmp_path / "weight.npy"), expected.numpy())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["col.npy", "weight.npy"]


def test_buckets_cover_all_nodes_and_stay_small() -> None:
    degree = np.random.default_rng(1).zipf(1.8, 5000).clip(max=900)
    ends = bucket_bounds(degree, 2000)
    assert ends[-1] == 5000 and bool((np.diff(ends) > 0).all())
    sizes = [part.sum() for part in np.split(degree, ends[:-1])]
    assert max(sizes) <= 2000 + degree.max()
