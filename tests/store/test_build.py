"""Tables into a graph folder: the same graph as in memory, complete or absent."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from conjoint.data import read_graph
from conjoint.errors import InputError, StorageError
from conjoint.graph.folder import is_graph_folder, open_folder
from conjoint.graph.manifest import MANIFEST
from conjoint.store import ingest, nodes
from own_files import write_own_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("tables")
    edges, table = write_own_files(here)
    ingest(edges, table, here / "graph", label="topic")
    return here


def test_the_graph_is_the_one_that_the_reader_of_small_files_gives(folder: Path) -> None:
    stored = open_folder(folder / "graph")
    read = read_graph(folder / "edges.csv", folder / "nodes.csv", label="topic")
    assert torch.equal(stored.edge_index, read.edge_index) and torch.equal(stored.y, read.y)
    assert torch.allclose(stored.x, read.x, atol=1e-6)
    assert stored.class_names == read.class_names and np.array_equal(stored.node_ids, read.node_ids)


@pytest.mark.parametrize("kind", ["parquet", "tsv"])
def test_other_formats_and_small_pieces_give_the_same_bits(
    folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "CELLS", 1)  # as few rows at a time as it goes
    for name in ("edges", "nodes"):
        frame = pl.read_csv(folder / f"{name}.csv", infer_schema_length=None)
        if kind == "parquet":
            frame.write_parquet(tmp_path / f"{name}.parquet", row_group_size=7)
        else:
            frame.write_csv(tmp_path / f"{name}.tsv", separator="\t")
    made = ingest(tmp_path / f"edges.{kind}", tmp_path / f"nodes.{kind}", tmp_path / "g", label="topic")
    assert made.fingerprint == open_folder(folder / "graph").fingerprint


def test_numbers_as_ids_parts_and_constant_columns(tmp_path: Path) -> None:
    pl.DataFrame({"a": [10, 30, 20, 10], "b": [20, 10, 10, 10]}).write_parquet(tmp_path / "e.parquet")
    table = {"id": [30, 10, 20], "label": [2, 10, None], "use": ["train", "Val", None], "f": [1.0, 2.0, 6.0]}
    pl.DataFrame({**table, "same": [4, 4, 4]}).write_parquet(tmp_path / "n.parquet")
    made = ingest(tmp_path / "e.parquet", tmp_path / "n.parquet", tmp_path / "g", split="use")
    graph = open_folder(tmp_path / "g")
    assert graph.node_ids.tolist() == [30, 10, 20] and graph.class_names == ["2", "10"]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.rowptr.tolist() == [0, 1, 3, 4] and graph.col.tolist() == [1, 0, 2, 1]
    assert [nodes.tolist() for nodes in graph.published["given"]] == [[0], [1], []]
    assert made.features == 1 and made.negative_features
    assert np.asarray(graph.x)[:, 0] == pytest.approx((np.array([1, 2, 6]) - 3) / np.std([1, 2, 6]))
    assert any("1 self-loop" in note for note in made.notes)


@pytest.mark.parametrize(
    ("edges", "table", "said"),
    [
        ("s,t\n1,9\n", "id,f\n1,0.5\n2,1\n", r"row 1, column 't': id 9 is not in .*--drop-unknown"),
        ("s,t\n1,2\n", "id,f\n1,0.5\n2,x\n", r"row 2, column 'f': 'x' is no finite number"),
        ("s,t\n1,2\n", "id,f\n1,0.5\n1,1\n", "stands in row 1 and again in row 2"),
        ("s,t\n1,1\n", "id,f\n1,0.5\n2,1\n", "no edges between different nodes"),
        ("s,t\n1,2\n", "id,f\n1,3\n2,3\n", "constant"),
        ("s,t\n1,2\n", "id,f\n", "no rows"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, edges: str, table: str, said: str) -> None:
    (tmp_path / "e.csv").write_text(edges)
    (tmp_path / "n.csv").write_text(table)
    with pytest.raises(InputError, match=said):
        ingest(tmp_path / "e.csv", tmp_path / "n.csv", tmp_path / "g")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "n.csv"]


def test_a_folder_is_never_overwritten(folder: Path) -> None:
    with pytest.raises(InputError, match="never overwritten"):
        ingest(folder / "edges.csv", folder / "nodes.csv", folder / "graph", label="topic")


def test_a_full_disk_leaves_nothing(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("conjoint.store.edges._distribute", full)
    with pytest.raises(StorageError, match=r"no space left on device.*nothing was kept"):
        ingest(folder / "edges.csv", folder / "nodes.csv", tmp_path / "g", label="topic")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_nothing_that_looks_complete(tmp_path: Path, folder: Path) -> None:
    """It dies at the worst moment, right after the manifest; the next attempt clears up after it."""
    script = (
        "import os, signal, conjoint.store.build as i\n"
        "i.os.fsync = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"i.ingest({str(folder / 'edges.csv')!r}, {str(folder / 'nodes.csv')!r}, "
        f"{str(tmp_path / 'g')!r}, label='topic')\n"
    )
    died = subprocess.run([sys.executable, "-c", script], env=os.environ)
    assert died.returncode == -signal.SIGKILL
    assert not (tmp_path / "g").exists() and len(list(tmp_path.iterdir())) == 1
    ingest(folder / "edges.csv", folder / "nodes.csv", tmp_path / "g", label="topic")
    assert [path.name for path in tmp_path.iterdir()] == ["g"] and is_graph_folder(tmp_path / "g")


def damaged(folder: Path, to: Path) -> Path:
    to.mkdir()
    for path in (folder / "graph").iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


@pytest.mark.parametrize("name", ["x", "col", "rowptr", "y", "ids"])
def test_a_truncated_array_is_told_by_name(tmp_path: Path, folder: Path, name: str) -> None:
    graph = damaged(folder, tmp_path / "g")
    file = graph / f"{name}.npy"
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(InputError, match=rf"{name}\.npy: .*manifest says.*truncated"):
        open_folder(graph)


def test_a_strange_manifest_is_refused(tmp_path: Path, folder: Path) -> None:
    graph = damaged(folder, tmp_path / "g")
    content = json.loads((graph / MANIFEST).read_text())
    wrong = [
        {"nodes": "many"},
        {"nodes": 61},
        {"format": 2},
        {"arrays": {}},
        {"surplus": 1},
        {"arrays": {**content["arrays"], "col": {"dtype": "<f4", "shape": [80], "bytes": 1, "sha256": ""}}},
    ]
    for change in wrong:
        (graph / MANIFEST).write_text(json.dumps(content | change))
        with pytest.raises(InputError, match=r"manifest\.json"):
            open_folder(graph)
    for text in ("[]", "{", "null"):
        (graph / MANIFEST).write_text(text)
        with pytest.raises(InputError, match=r"manifest\.json"):
            open_folder(graph)
    (graph / MANIFEST).unlink()
    with pytest.raises(InputError, match="no complete graph folder"):
        open_folder(graph)
