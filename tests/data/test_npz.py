"""NPZ: no pickle, no trust in stated sizes, and arrays that must fit together."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint.data import read_graph
from conjoint.data.npz import read_arrays
from conjoint.errors import InputError


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def write_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(f"{name}.npy", raw)
    return path


class Payload:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickled_array_is_never_opened(tmp_path: Path) -> None:
    evil = np.empty(1, dtype=object)
    evil[0] = Payload(tmp_path / "ran")
    path = write_zip(tmp_path / "g.npz", edges=npy(np.array([[0, 1]])), y=npy(evil))
    with pytest.raises(InputError, match=r"g\.npz: array 'y\.npy' is a pickle, which can run code"):
        read_graph(path)
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    with pytest.raises(InputError, match=r"is not a whole \.npz archive"):
        read_graph(tmp_path / "raw.npz")
    assert not (tmp_path / "ran").exists()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "g.npz", x=npy(np.zeros(2_000_000, dtype=np.uint8)))
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="unpacks to 2,000,128 bytes, more than the limit of 1,000,000"):
        read_arrays(path, max_bytes=1_000_000)


def test_a_header_that_states_more_than_there_is(tmp_path: Path) -> None:
    raw = npy(np.zeros(3)).replace(b"(3,), }           ", b"(3000000000000,), }")
    with pytest.raises(InputError, match=r"states shape .*which its size contradicts"):
        read_arrays(write_zip(tmp_path / "g.npz", x=raw))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, 1]}, "has no edges, edge_index or adj_data; it has y"),
        ({"edges": [[0, 1], [1, 5]], "y": [0, 1]}, r"edge 1 joins \[1, 5\], but nodes go from 0 to 1"),
        ({"edges": [[0, -1]], "y": [0, 1]}, r"edge 0 joins \[0, -1\]"),
        ({"edges": [[0.0, 1.0]], "y": [0, 1]}, "are not pairs of rows"),
        ({"edges": [0, 1], "y": [0, 1]}, "are not pairs of rows"),
        ({"edges": [[0, 1]], "y": [0, 1], "x": [[1.0], [np.nan]]}, "NaN or infinite"),
        (
            {"edges": [[0, 1]], "y": [0, 1], "x": [[1.0]]},
            r"x has shape \(1, 1\); give one row per node \(2\)",
        ),
        ({"edges": [[0, 1]], "y": [0, 1], "x": [["a"], ["b"]]}, "not numbers"),
        ({"edges": [[0, 1]], "y": [0, 1], "node_ids": ["a", "a"]}, "node id 'a' stands there twice"),
        ({"edges": [[0, 1]], "y": [0, 9]}, "label 9 is too large"),
        ({"edges": [[0, 1]], "y": [0, 0.5]}, "labels are fractions"),
        ({"edges": [[0, 1]], "y": [0, 1], "class_names": ["a"]}, "label 1 has no name"),
        ({"edges": [[0, 1]], "y": [0, 1], "edge_weight": [1.0, 2.0]}, "one number per edge"),
        ({"edges": [[0, 1]], "y": [0, 1], "edge_weight": [np.inf]}, "weight of edge 0 is no finite number"),
        ({"edges": [[0, 10**12]]}, "nothing says there are so many nodes"),
        ({"edges": [[0, 1]], "y": [0, 1], "x_data": [1.0]}, r"x_\* do not form a sparse matrix"),
        (
            {"edges": [[0, 1]], "x_data": [1.0], "x_indices": [7], "x_indptr": [0, 1, 1], "x_shape": [2, 3]},
            r"x_\* do not form a sparse matrix",
        ),
    ],
)
def test_an_npz_graph_that_does_not_fit_together(arrays: dict, message: str, tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, **{name: np.array(value) for name, value in arrays.items()})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message) as error:
        read_graph(path)
    assert "\n" not in str(error.value)


def test_npz_is_whole_by_itself(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1]]), x=np.eye(2))
    with pytest.raises(InputError, match="leave out nodes="):
        read_graph(tmp_path / "g.npz", tmp_path / "n.csv")


@pytest.mark.parametrize("code", [0x110000, 0x7FFFFFFF, 0xD800])
@pytest.mark.parametrize("order", ["<", ">"])
def test_text_that_holds_no_letters_is_refused(tmp_path: Path, code: int, order: str) -> None:
    """Python's own conversion of such an array ends in a SystemError."""
    ids = np.array([code, 97, 98], dtype=f"{order}u4").view(f"{order}U1")
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1], [1, 2]]), x=np.eye(3), node_ids=ids)
    with pytest.raises(InputError, match="its text holds numbers that are no letters"):
        read_graph(tmp_path / "g.npz")
