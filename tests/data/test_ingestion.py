"""Tables into a graph folder: the same graph as in memory, complete or absent."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from conjoint.data import ingest, ingestion, read_graph
from conjoint.errors import InputError, StorageError
from conjoint.graph.folder import is_graph_folder, open_folder
from golden.commands import RUNS
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
    monkeypatch.setattr(ingestion, "CELLS", 1)  # as few rows at a time as it goes
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


LABEL: dict[str, Any] = {"label": "team"}
TEXT: dict[str, Any] = {**LABEL, "text": "bio", "ignore": ["born", "use", "year"]}
SAME: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "categories": {**LABEL, "categorical": ["unit", "year"], "ignore": ["bio", "born", "use"]},
    "guessed categories": {**LABEL, "ignore": ["bio", "born", "use", "year"]},
    "two texts": {**LABEL, "text": ["bio", "unit"], "ignore": ["born", "use"]},
    "weights, times and parts": {
        **LABEL,
        "text": "bio",
        "weight": "strength",
        "time": "year",
        "split": "use",
    },
    "as they are": {**TEXT, "standardise": False},
    "made from edges": {**LABEL, "features": "degree:8"},
    "spectral": {**LABEL, "features": "spectral:4", "weight": "strength"},
}


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("case", SAME)
def test_a_folder_and_the_tables_have_one_fingerprint(tmp_path: Path, case: str, kind: str) -> None:
    tables = {}
    for name in ("edges", "nodes"):
        tables[name] = tmp_path / f"{name}.{kind}"
        text = (RUNS / f"{name}.csv").read_bytes()
        if kind == "parquet":
            pl.read_csv(text, infer_schema=False).write_parquet(tables[name])
        else:
            tables[name].write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    read = read_graph(tables["edges"], tables["nodes"], **SAME[case])
    ingest(tables["edges"], tables["nodes"], tmp_path / "graph", **SAME[case])
    stored = open_folder(tmp_path / "graph")
    assert stored.fingerprint == stored.changed().fingerprint == read.fingerprint
    assert torch.equal(stored.edge_index, read.edge_index) and stored.x.layout == read.x.layout
    assert stored.feature_names == read.feature_names
    for name in ("edge_weight", "node_time"):
        one, other = getattr(stored, name), getattr(read, name)
        assert (one is None) == (other is None) and (one is None or bool((one == other).all()))
    assert stored.published.keys() == read.published.keys()
    for one, other in zip(stored.published.get("given", ()), read.published.get("given", ()), strict=True):
        assert np.array_equal(one, other)
    left = {path.suffix for path in (tmp_path / "graph").iterdir()}
    assert left == {".npy", ".json"}  # nothing that was unpacked or spilled


def test_numbers_that_are_packed_give_the_same_folder(folder: Path, tmp_path: Path) -> None:
    for name in ("edges", "nodes"):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress((folder / f"{name}.csv").read_bytes()))
    made = ingest(tmp_path / "edges.csv.gz", tmp_path / "nodes.csv.gz", tmp_path / "g", label="topic")
    assert made.fingerprint == open_folder(folder / "graph").fingerprint


def test_edges_alone_and_whole_graphs(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("# two columns\n5 6\n6 9\n9 07\n")
    ingest(tmp_path / "e.txt", None, tmp_path / "alone", features="degree:3")
    read = read_graph(tmp_path / "e.txt", features="degree:3")
    assert open_folder(tmp_path / "alone").fingerprint == read.fingerprint
    np.savez(
        tmp_path / "g.npz", edges=[[0, 1], [1, 2]], x=np.eye(3), y=[0, 1, -1], train=[0], val=[1], test=[]
    )
    ingest(tmp_path / "g.npz", None, tmp_path / "npz")
    assert open_folder(tmp_path / "npz").fingerprint == read_graph(tmp_path / "g.npz").fingerprint
    with pytest.raises(InputError, match="label= and id= name columns of a node table"):
        ingest(tmp_path / "e.txt", None, tmp_path / "no", label="topic")
    with pytest.raises(InputError, match="sparse= is no argument here"):
        ingest(tmp_path / "e.txt", None, tmp_path / "no", sparse=True)


def test_a_table_with_text_that_is_too_large_to_be_read_whole(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("s,t\n1,2\n")
    (tmp_path / "n.csv").write_text("id,f\n1,0.5\n2,x\n")
    with pytest.raises(InputError, match=r"n\.csv column 'f' is no finite number; text .* ignore"):
        ingest(tmp_path / "e.csv", tmp_path / "n.csv", tmp_path / "g", max_bytes=10)
    with pytest.raises(InputError, match=r"n\.csv column 'f' is no finite number"):
        ingest(tmp_path / "e.csv", tmp_path / "n.csv", tmp_path / "g", text="f", max_bytes=10)


def test_batches_refuse_the_weights_of_a_folder(tmp_path: Path) -> None:
    ingest(RUNS / "edges.csv", RUNS / "nodes.csv", tmp_path / "g", weight="strength", **TEXT)
    with pytest.raises(InputError, match="batches do not take edge weights"):
        _ = open_folder(tmp_path / "g").csr


@pytest.mark.parametrize(
    ("edges", "table", "said"),
    [
        ("s,t\n1,9\n", "id,f\n1,0.5\n2,1\n", r"row 1, column 't': id 9 is not in .*drop_unknown=True"),
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

    monkeypatch.setattr("conjoint.data.edge_sort._distribute", full)
    with pytest.raises(StorageError, match=r"no space left on device.*nothing was kept"):
        ingest(folder / "edges.csv", folder / "nodes.csv", tmp_path / "g", label="topic")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_nothing_that_looks_complete(tmp_path: Path, folder: Path) -> None:
    """It dies at the worst moment, right after the manifest; the next attempt clears up after it."""
    script = (
        "import os, signal, conjoint.data.ingestion as i\n"
        "i.os.fsync = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"i.ingest({str(folder / 'edges.csv')!r}, {str(folder / 'nodes.csv')!r}, "
        f"{str(tmp_path / 'g')!r}, label='topic')\n"
    )
    died = subprocess.run([sys.executable, "-c", script], env=os.environ)
    assert died.returncode == -signal.SIGKILL
    assert not (tmp_path / "g").exists() and len(list(tmp_path.iterdir())) == 1
    ingest(folder / "edges.csv", folder / "nodes.csv", tmp_path / "g", label="topic")
    assert [path.name for path in tmp_path.iterdir()] == ["g"] and is_graph_folder(tmp_path / "g")
