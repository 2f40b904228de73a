"""NPZ, GraphML, gzip and download: bounded, without pickle, and whole or not at all."""

import gzip
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from conjoint.data import download, fingerprint, from_any, read_graph
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
    with pytest.raises(InputError, match="leave nodes= out"):
        read_graph(tmp_path / "g.npz", tmp_path / "n.csv")


def test_graphml_equals_the_networkx_graph(tmp_path: Path) -> None:
    graph = nx.karate_club_graph()
    nx.write_graphml(graph, tmp_path / "k.graphml")
    (tmp_path / "k.graphml.gz").write_bytes(gzip.compress((tmp_path / "k.graphml").read_bytes()))
    expected = from_any(graph, label="club", weight="weight", features="degree:5")
    assert expected.class_names == ["Mr. Hi", "Officer"] and expected.num_edges == 156
    for name in ("k.graphml", "k.graphml.gz"):
        again = read_graph(tmp_path / name, label="club", weight="weight", features="degree:5")
        assert fingerprint(again) == fingerprint(expected)


LAUGHS = """<?xml version="1.0"?><!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, r"line 1: a document type \(DTD\) is not allowed"),
        ("<graphml><graph><node id='a'>", "line 1 is not XML"),
        ("<html></html>", "the root is <html>, not <graphml>"),
        ("<graphml><graph><node/></graph></graphml>", "<node> lacks id="),
        (
            "<graphml><graph>\n<node id='a'/><edge source='a'/></graph></graphml>",
            "line 2: <edge> lacks target=",
        ),
        ("<graphml><graph><node id='a'/></graph></graphml>", "has 1 nodes and 0 edges"),
        ("<graphml><graph><hyperedge/></graph></graphml>", "hyperedges are not supported"),
    ],
)
def test_bad_graphml(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_graph(path, features="degree:2")
    assert "\n" not in str(error.value)


def test_graphml_keys_cannot_multiply_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjoint.data.graphml.MAX_CELLS", 50)
    nodes = "".join(f"<node id='{i}'><data key='k{i}'>1</data></node>" for i in range(10))
    path = tmp_path / "g.graphml"
    path.write_text(f"<graphml><graph>{nodes}<edge source='1' target='2'/></graph></graphml>")
    with pytest.raises(InputError, match="10 elements with 11 different keys; too many"):
        read_graph(path, features="degree:2")


def test_a_download_is_whole_and_checked_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download.urllib.request, "urlopen", lambda url, timeout: io.BytesIO(b"hello"))
    target = tmp_path / "deep" / "file"
    with pytest.raises(InputError, match="did not send the known file"):
        download.fetch("https://example.org/file", target, "0" * 64)
    assert list(target.parent.iterdir()) == []
    known = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256 of hello
    download.fetch("https://example.org/file", target, known)
    assert target.read_bytes() == b"hello" and len(list(target.parent.iterdir())) == 1


def test_an_archive_gives_only_the_members_asked_for(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("arxiv/raw/edge.csv.gz", b"edges")
        archive.writestr("../escape", b"no")
    members = {"arxiv/raw/edge.csv.gz": "raw/edge.csv.gz", "arxiv/raw/absent": "raw/absent"}
    download.unpack(tmp_path / "a.zip", tmp_path / "out", members)
    assert [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()] == ["edge.csv.gz"]
    assert not (tmp_path / "escape").exists()
