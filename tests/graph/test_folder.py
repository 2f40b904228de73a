"""A graph folder: nothing in it is trusted before it is used."""

import json
from pathlib import Path

import numpy as np
import pytest

from conjoint.data import ingest
from conjoint.errors import InputError
from conjoint.graph.folder import MANIFEST, open_folder
from own_files import write_own_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("tables")
    edges, table = write_own_files(here)
    ingest(edges, table, here / "graph", label="topic")
    return here


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
        {"format": 3},
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


def test_strange_sparse_features_are_refused(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("s,t\n1,2\n2,3\n")
    nodes.write_text("id,kind\n1,x\n2,y\n3,x\n")
    for number in range(9):
        nodes.write_text(nodes.read_text() + f"{number + 4},k{number}\n")
    ingest(edges, nodes, tmp_path / "g")
    file = tmp_path / "g" / "x_indices.npy"
    kept = file.read_bytes()
    file.write_bytes(kept[:-8] + np.int64(99).tobytes())
    with pytest.raises(InputError, match=r"x_\*\.npy: no sparse matrix; ingest the graph again"):
        open_folder(tmp_path / "g")
    file.write_bytes(kept[:-8])
    with pytest.raises(InputError, match=r"x_indices\.npy: .*manifest says.*truncated"):
        open_folder(tmp_path / "g")
