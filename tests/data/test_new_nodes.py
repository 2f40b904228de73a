"""New rows are encoded with what the known rows taught: words, categories, scales, classes."""

from pathlib import Path

import numpy as np
import pytest

from conjoint.data.own import read_graph, read_new_nodes
from conjoint.errors import InputError

KNOWN = """\
id,team,age,city,motto
a,x,20,Rome,live long
b,y,40,Oslo,live well
c,x,60,Rome,long days
d,y,20,Oslo,well
"""
LATER = "id,team,age,city,motto\ne,z,100,Lima,live forever\nf,,30,Rome,long\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"nodes": KNOWN, "edges": "source,target\na,b\nb,c\nc,d\n"}
    texts |= {"new_nodes": LATER, "new_edges": "source,target\ne,a\nf,e\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: tmp_path / f"{name}.csv" for name in texts}


def test_known_rows_stay_and_new_rows_follow_them(files: dict[str, Path]) -> None:
    given = {"edges": str(files["edges"]), "nodes": str(files["nodes"]), "label": "team", "text": ["motto"]}
    before = read_graph(**given)  # type: ignore[arg-type]
    after = read_new_nodes(before, given, nodes=files["new_nodes"], edges=files["new_edges"])
    assert list(after.node_ids) == ["a", "b", "c", "d", "e", "f"]
    assert after.feature_names == before.feature_names and after.class_names == ["x", "y"]
    assert after.y.tolist() == [0, 1, 0, 1, -1, -1]  # team z is no class that training knew
    old, new = before.x.to_dense().numpy(), after.x.to_dense().numpy()
    np.testing.assert_allclose(new[:4], old, rtol=1e-6)
    names = list(before.feature_names or [])
    slope = (old[1, 0] - old[0, 0]) / 20  # of the standardised age
    assert new[4, 0] == pytest.approx(old[0, 0] + 80 * slope, rel=1e-5)
    assert new[4, names.index("city=Rome")] == new[4, names.index("city=Oslo")] == 0  # Lima is unknown
    assert new[4, names.index("motto:live")] == pytest.approx(1.0)  # and so is the word "forever"
    pairs = {(i, j) for i, j in after.edge_index.t().tolist() if i < j}
    assert pairs == {(0, 1), (1, 2), (2, 3), (0, 4), (4, 5)}


def test_an_edge_to_a_node_that_nobody_knows_is_refused(files: dict[str, Path]) -> None:
    given = {"edges": str(files["edges"]), "nodes": str(files["nodes"]), "label": "team", "text": ["motto"]}
    files["new_edges"].write_text("source,target\ne,zoe\n")
    before = read_graph(**given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'zoe' is not in"):
        read_new_nodes(before, given, nodes=files["new_nodes"], edges=files["new_edges"])


def test_a_graph_with_features_made_from_edges_cannot_grow(files: dict[str, Path]) -> None:
    given = {"edges": str(files["edges"]), "nodes": str(files["nodes"]), "features": "degree:4"}
    before = read_graph(str(files["edges"]), str(files["nodes"]), features="degree:4", text=["motto"])
    with pytest.raises(InputError, match="train on the graph with them"):
        read_new_nodes(before, given, nodes=files["new_nodes"], edges=files["new_edges"])


def test_tables_of_numbers_without_a_header_are_read_as_in_training(tmp_path: Path) -> None:
    texts = {"nodes": "id,age,team\n1,20,x\n2,40,y\n3,60,x\n4,20,y\n", "edges": "1,2\n2,3\n3,4\n"}
    texts |= {"new_nodes": "id,age,team\n5,30,\n", "new_edges": "5,1\n4,5\n"}
    files = {name: tmp_path / f"{name}.csv" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    given = {"edges": str(files["edges"]), "nodes": str(files["nodes"]), "label": "team"}
    before = read_graph(**given)  # type: ignore[arg-type]
    after = read_new_nodes(before, given, nodes=files["new_nodes"], edges=files["new_edges"])
    pairs = {(i, j) for i, j in after.edge_index.t().tolist() if i < j}
    assert pairs == {(0, 1), (1, 2), (2, 3), (0, 4), (3, 4)}
