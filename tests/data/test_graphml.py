"""GraphML: the same graph as NetworkX holds, and nothing that expands."""

import gzip
from pathlib import Path

import networkx as nx
import pytest

from conjoint.data import as_graph, from_any, read_graph
from conjoint.errors import InputError


def test_graphml_equals_the_networkx_graph(tmp_path: Path) -> None:
    graph = nx.karate_club_graph()
    nx.write_graphml(graph, tmp_path / "k.graphml")
    (tmp_path / "k.graphml.gz").write_bytes(gzip.compress((tmp_path / "k.graphml").read_bytes()))
    expected = from_any(graph, label="club", weight="weight", features="degree:5")
    assert expected.class_names == ["Mr. Hi", "Officer"] and expected.num_edges == 156
    for name in ("k.graphml", "k.graphml.gz"):
        again = read_graph(tmp_path / name, label="club", weight="weight", features="degree:5")
        assert as_graph(again).fingerprint == as_graph(expected).fingerprint


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
        (
            '<?xml version="1.0" encoding="klingon"?><graphml/>',
            "in an encoding that cannot be read .*; save it as UTF-8",
        ),
        (
            '<?xml version="1.0" encoding="utf-7"?><graphml/>',
            "in an encoding that cannot be read .*; save it as UTF-8",
        ),
        (
            '<?xml version="1.0" encoding="hex"?><graphml/>',
            "in an encoding that cannot be read .*; save it as UTF-8",
        ),
    ],
)
def test_bad_graphml(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_graph(path, features="degree:2")
    assert "\n" not in str(error.value)


def test_graphml_keys_cannot_multiply_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjoint.data.from_tables.MAX_CELLS", 50)
    nodes = "".join(f"<node id='{i}'><data key='k{i}'>1</data></node>" for i in range(10))
    path = tmp_path / "g.graphml"
    path.write_text(f"<graphml><graph>{nodes}<edge source='1' target='2'/></graph></graphml>")
    with pytest.raises(InputError, match="10 elements with 11 different keys; too many"):
        read_graph(path, features="degree:2")
