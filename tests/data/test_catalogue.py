"""The table of data sets: every name, true sizes, where it is."""

from pathlib import Path

import pytest

from conjoint.data import load_graph
from conjoint.data.catalogue import SIZES, datasets_table


def test_the_catalogue_names_every_graph_and_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = datasets_table()
    assert {row["name"] for row in rows} == set(SIZES)
    where = {(row["name"], row["source"]): row["where"] for row in rows}
    assert where["cora", "embedded"] == "inside the package"
    assert "downloaded on first use" in where["ogbn-arxiv", "ogb"]
    assert where["pubmed", "release"].startswith("put it into")


def test_the_catalogue_finds_what_is_there_and_states_true_sizes(shared_data: Path) -> None:
    for row in datasets_table(shared_data):
        if row["source"] != "embedded":
            assert str(shared_data) in row["where"]
        if row["name"] != "ogbn-arxiv":
            data = load_graph(row["name"], root=shared_data, source=row["source"])
            found = (data.num_nodes, data.num_edges // 2, data.x.size(1), len(data.class_names))
            assert found == tuple(row[key] for key in ("nodes", "edges", "features", "classes"))
            assert set(data.known_splits) <= set(row["splits"])
