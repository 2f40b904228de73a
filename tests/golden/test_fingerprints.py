"""Every reader gives the graph recorded in `fingerprints.json`, and every split its nodes."""

import filecmp
import json
from pathlib import Path

import pytest

from conjoint.cli import main
from golden.bits import skip_unless_made_here
from golden.commands import HERE, INGEST, RUNS, tables
from golden.graphs import BENCHMARKS, OWN, benchmark, facebook, fingerprint_of, other, splits_of

RECORDED = json.loads((HERE / "fingerprints.json").read_text())


@pytest.mark.parametrize("name", OWN)
def test_own_graphs(name: str, tmp_path: Path) -> None:
    if name == "spectral":  # singular vectors
        skip_unless_made_here(RECORDED["made_with"])
    graph = OWN[name](tmp_path)
    assert fingerprint_of(graph) == RECORDED["own"][name]
    if name == "all columns":
        assert splits_of(graph) == RECORDED["own_splits"]


def test_the_embedded_cora() -> None:
    graph = benchmark("cora", source="embedded")
    assert {"graph": fingerprint_of(graph), "splits": splits_of(graph)} == RECORDED["benchmarks"]["embedded"]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks(name: str, shared_data: Path) -> None:
    graph = benchmark(name, root=shared_data, **BENCHMARKS[name])
    assert {"graph": fingerprint_of(graph), "splits": splits_of(graph)} == RECORDED["benchmarks"][name]


@pytest.mark.parametrize("name", RECORDED["other"])
def test_other_graphs(name: str, shared_data: Path) -> None:
    folder = shared_data / "other"
    if not folder.is_dir():
        pytest.skip(f"{shared_data} has no other graphs")
    graph = facebook(shared_data) if name == "facebook" else other(folder / f"{name}.npz")
    assert fingerprint_of(graph) == RECORDED["other"][name]


def test_a_graph_folder_has_the_same_files(tmp_path: Path) -> None:
    made = tmp_path / "graph"
    assert main(["ingest", *tables(RUNS), *INGEST, "--out", str(made), "--quiet"]) == 0
    names = [path.name for path in (RUNS / "graph").iterdir()]
    assert filecmp.cmpfiles(RUNS / "graph", made, names, shallow=False) == (names, [], [])
