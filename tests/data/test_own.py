"""The user's own files: what comes in comes through, and what is wrong is said in one line."""

import gzip
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjoint.data import as_graph, make_split, read_graph, write_graph
from conjoint.errors import InputError

NODES = "id,age,kind,about,subject\na,1,x,red fox,A\nb,2,y,blue fox,B\nc,3,x,red,\nd,4,,,A\n"
EDGES = "source,target,w\na,b,1\nb,c,2\nc,b,3\nd,d,1\na,b,1\nd,a,2\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text(EDGES)
    nodes.write_text(NODES)
    return edges, nodes


def test_ids_labels_weights_and_columns_come_through(files: tuple[Path, Path]) -> None:
    data = read_graph(*files, label="subject", text="about", weight="w")
    assert data.node_ids.tolist() == ["a", "b", "c", "d"]
    assert data.class_names == ["A", "B"] and data.y.tolist() == [0, 1, -1, 0]
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 3], [1, 3, 0, 2, 1, 0]]
    assert data.edge_weight is not None
    assert data.edge_weight.tolist() == [2, 2, 2, 3, 3, 2]  # a-b twice: added; b-c both ways: the larger
    names = list(data.feature_names or [])
    assert names[:6] == ["age", "kind=x", "kind=y", "about:blue", "about:fox", "about:red"]
    assert all(name.startswith("about~") for name in names[6:])  # pieces of words
    assert data.x[:, 0].tolist() == pytest.approx([-1.3416, -0.4472, 0.4472, 1.3416], abs=1e-4)
    assert data.x[:, 1].tolist() == [1, 0, 1, 0]
    assert data.notes == [
        "classes with too few labels to learn: 'A' (2), 'B' (1)",
        "1 node without a label",
        "column 'kind': 1 empty cell as no category",
        "standardised 1 numeric column",
        "dropped 1 self-loop (layers add their own)",
        "merged (weights added) 1 duplicate edge",
        "made undirected: 3 edges became 6 entries",
    ]


def test_every_spelling_of_the_same_table_gives_the_same_graph(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    expected = as_graph(read_graph(*files, label="subject", text="about")).fingerprint
    for mark, name in ((",", "a.csv"), ("\t", "b.tsv"), (";", "c.csv"), ("|", "d.txt")):
        edges, nodes = tmp_path / ("e" + name), tmp_path / ("n" + name)
        edges.write_text(EDGES.replace(",", mark))
        nodes.write_text(NODES.replace(",", mark).replace("\n", "\r\n"))
        assert as_graph(read_graph(edges, nodes, label="subject", text="about")).fingerprint == expected
        for path in (edges, nodes):
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        zipped = read_graph(f"{edges}.gz", f"{nodes}.gz", label="subject", text="about")
        assert as_graph(zipped).fingerprint == expected
    pl.read_csv(files[0]).write_parquet(tmp_path / "e.parquet")
    pl.read_csv(files[1]).write_parquet(tmp_path / "n.parquet")
    parquet = read_graph(tmp_path / "e.parquet", tmp_path / "n.parquet", label="subject", text="about")
    assert as_graph(parquet).fingerprint == expected
    files[1].write_bytes(b"\xef\xbb\xbf" + files[1].read_bytes())  # a byte-order mark, as Excel writes it
    assert as_graph(read_graph(*files, label="subject", text="about")).fingerprint == expected


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (["7", "10", "2"], [2, 7, 10]),
        (["07", "7", "1"], ["07", "1", "7"]),  # an id is never rewritten
        (["-3", "0", "5"], [-3, 0, 5]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["99999999999999999999", "1", "2"], ["1", "2", "99999999999999999999"]),
        (["x", "1", "é"], ["1", "x", "é"]),
    ],
)
def test_ids_are_numbers_only_where_all_are(written: list[str], kept: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    a, b, c = written
    path.write_text(f"source,target\n{a},{b}\n{b},{c}\n")
    data = read_graph(path, features="degree:3")
    assert data.node_ids.tolist() == kept
    assert data.num_edges == 4


def test_an_edge_list_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "snap.txt"
    path.write_text("# Nodes: 3\n# From To\n5 6\n6 9\n")
    data = read_graph(path, features="degree:3")
    assert data.node_ids.tolist() == [5, 6, 9] and data.num_edges == 4


def test_far_apart_numbers_as_ids(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("source,target\n10,900000000000\n900000000000,-5\n")
    assert read_graph(path, features="degree:3").edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


def test_bags_of_words_stay_sparse(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\n0,1\n1,2\n2,3\n")
    head = ",".join(f"w{i}" for i in range(40))
    rows = "".join(
        f"{n}," + ",".join("2" if i % 20 == n else "0" for i in range(40)) + "\n" for n in range(20)
    )
    nodes.write_text(f"id,{head}\n{rows}")
    data = read_graph(edges, nodes)
    assert data.x.layout == torch.sparse_csr and data.x.values().unique().tolist() == [1.0]
    assert "scaled 40 mostly empty numeric columns to at most 1" in data.notes


def test_a_split_column_and_a_time_column(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\n1,2\n2,3\n3,4\n")
    rows = ("1,5,a,train,2001", "2,6,b,Train,2001", "3,5,a,val,2002", "4,4,b,test,2003")
    nodes.write_text("\n".join(("id,v,label,part,year", *rows)))
    data = read_graph(edges, nodes, split="part", time="year")
    assert data.feature_names == ["v"]
    for split in (make_split(data, "given"), make_split(data, "time", train_until=2001, val_until=2002)):
        assert [p.tolist() for p in (split.train, split.val, split.reveal_test())] == [[0, 1], [2], [3]]


def test_unknown_ends_may_be_dropped_on_request(files: tuple[Path, Path]) -> None:
    files[0].write_text(EDGES + "a,zz,1\n")
    data = read_graph(*files, label="subject", ignore="about", drop_unknown=True)
    assert any(line.startswith("dropped 1 edge whose ends") for line in data.notes)


# ---- bad input: (edges, nodes, options, what the one line must say)
E, N = EDGES.encode(), NODES.encode()
BOMB = gzip.compress(b"a,b\n" * 40_000_000, 9)
BAD: dict[str, tuple[bytes, bytes, dict[str, Any], str]] = {
    "unknown id": (
        E + b"a,zz,1\n",
        N,
        {},
        r"edges\.csv row 7, column 'target': id 'zz' is not in .*nodes\.csv",
    ),
    "duplicate node": (
        E,
        N + b"b,9,x,,B\n",
        {},
        r"nodes\.csv: node id 'b' stands in row 2 and again in row 5",
    ),
    "no label column": (
        E,
        N,
        {"label": "topic"},
        r"nodes\.csv has no column 'topic' \(label=\); it has id, age",
    ),
    "no weight column": (E, N, {"weight": "cost"}, r"edges\.csv has no column 'cost' \(weight=\)"),
    "bad weight": (
        E.replace(b"d,a,2", b"d,a,two"),
        N,
        {"weight": "w"},
        r"edges\.csv row 6, column 'w': 'two'",
    ),
    "source without target": (E, N, {"source": "source"}, "name both columns or neither"),
    "empty file": (b"", N, {}, r"edges\.csv is empty"),
    "header only": (b"source,target\n", N, {}, r"edges\.csv has a header but no rows"),
    "truncated": (E + b"a", N, {}, r"edges\.csv row 7, column 'target': no id"),
    "wrong delimiter": (
        E,
        N,
        {"delimiter": ";"},
        r"edges\.csv has one column only when split at each semicolon",
    ),
    "long delimiter": (E, N, {"delimiter": "::"}, "must be one character"),
    "ragged": (E + b"a,b,1,2,3\n", N, {}, r"edges\.csv is not a comma-separated table: line 8 has 5 cells"),
    "mixed ids": (
        b"source,target\n1,2\n2,x9\n",
        b"id,v\n1,3\n2,4\n3,5\n",
        {},
        r"row 2, column 'target': id 'x9' is not in .*nodes\.csv, where all ids are whole numbers",
    ),
    "no edges left": (b"source,target\na,a\nb,b\n", N, {}, "has no edges between different nodes"),
    "no id": (E, N.replace(b"\nc,", b"\n,"), {}, r"nodes\.csv row 3, column 'id': no id"),
    "binary": (b"\x7fELF\x00\x01,\x00", N, {}, r"edges\.csv holds zero bytes"),
    "pickle": (pickle.dumps({"a": 1}), N, {}, r"edges\.csv is a pickle, which can run code"),
    "zip": (b"PK\x03\x04rest", N, {}, r"edges\.csv is a zip archive"),
    "Latin-1": (
        E,
        N.replace(b"red fox", b"caf\xe9"),
        {},
        r"nodes\.csv line 2 is not UTF-8; .*caf.* encoding=cp1252",
    ),
    "gzip bomb": (BOMB, N, {}, r"edges\.csv swells from .* to more than .* bytes; not unpacked"),
    "cut gzip": (gzip.compress(E)[:-9], N, {}, r"edges\.csv is not a whole gzip file"),
    "gzipped twice": (gzip.compress(gzip.compress(E)), N, {}, r"edges\.csv is gzipped twice"),
    "too large": (E, N, {"max_bytes": 10}, r"edges\.csv has 52 bytes, more than the limit of 10"),
    "wide header": (
        b"," * 200_000 + b"\n" + b"a\n" * 200_000,
        N,
        {},
        r"edges\.csv has 200,001 columns in its first",
    ),
    "huge numbers": (E, N.replace(b"b,2", b"b,1e300"), {"standardise": False}, "'age' has values too large"),
    "bad part": (
        E,
        N,
        {"split": "kind"},
        r"nodes\.csv row 1, 2, 3, column 'kind': 'x' is none of train, val, test",
    ),
    "unknown text column": (E, N, {"text": "prose"}, r"nodes\.csv has no column 'prose'"),
    "words without letters": (E, N, {"text": ("about", "age")}, r"nodes\.csv, column 'age' holds no words"),
    "label without nodes": (E, b"", {"nodes": None, "label": "x"}, "give nodes= as well"),
    "bad features": (E, N, {"features": "spectral:9"}, "spectral:9 needs 0 < k < 4"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_that_names_the_place(case: str, tmp_path: Path) -> None:
    edge_bytes, node_bytes, options, message = BAD[case]
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_bytes(edge_bytes)
    nodes.write_bytes(node_bytes)
    if node_bytes.startswith(b"id,age") and "text" not in options:
        options = {"ignore": "about", **options}
    with pytest.raises(InputError, match=message) as error:
        read_graph(edges, **{"nodes": nodes, **options})
    assert "\n" not in str(error.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nope\.csv does not exist"):
        read_graph(tmp_path / "nope.csv")
    with pytest.raises(InputError, match="is not a file"):
        read_graph(tmp_path)


def test_a_broken_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pl.DataFrame({"a": [1, 2], "b": [3, 4]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="is not a whole Parquet file"):
        read_graph(path, features="degree:2")


def test_a_parquet_file_that_swells_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pl.DataFrame({"a": ["x" * 3_000_000, "y"], "b": ["u", "v"]}).write_parquet(path, statistics=False)
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match=r"unpacks to 3,\d{3},\d{3} bytes, more than the limit of 1,000,000"):
        read_graph(path, features="degree:2", max_bytes=1_000_000)


def test_a_parquet_file_that_repeats_one_value_without_end(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pl.DataFrame({"a": ["1"] * 100_000, "b": ["2"] * 100_000}).write_parquet(path)
    with pytest.raises(InputError, match="states 100,000 rows of 2 columns"):
        read_graph(path, features="degree:2", max_bytes=1_000_000)


@pytest.mark.parametrize("stated", [-4, 63])
def test_a_parquet_page_that_states_other_numbers_of_values(tmp_path: Path, stated: int) -> None:
    """Taken at its word, the library ends the whole process: it reserves room for that many values."""
    path = tmp_path / "e.parquet"
    pl.DataFrame({"a": [1, 2, 3] * 5, "b": [2, 3, 1] * 5}).write_parquet(path, statistics=False)
    whole = path.read_bytes()
    count = b"\x15\x1e\x15"  # field 1 of a data page's header: 15 values, and what begins the next field
    assert count in whole
    zigzag = 2 * stated if stated >= 0 else -2 * stated - 1
    path.write_bytes(whole.replace(count, bytes([0x15, zigzag, 0x15])))
    with pytest.raises(InputError, match="is not a whole Parquet file"):
        read_graph(path, features="degree:2")


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd", "gzip"])
def test_the_stated_size_of_a_parquet_file_is_pyarrows(compression: str) -> None:
    import pyarrow.parquet

    from conjoint.data.parquet_size import unpacked_bytes

    buffer = BytesIO()
    frame = pl.DataFrame(
        {"a": np.arange(50_000), "b": ["some text", None] * 25_000, "c": [0.5, 1.5] * 25_000}
    )
    frame.write_parquet(buffer, compression=compression, row_group_size=10_000)  # type: ignore[arg-type]
    meta = pyarrow.parquet.read_metadata(buffer)
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    stated = sum(g.column(i).total_uncompressed_size for g in groups for i in range(g.num_columns))
    # The footer counts page headers as well, a few dozen bytes each.
    assert 0.98 * stated < unpacked_bytes(buffer.getvalue()) <= stated


# ---- round trips
letters = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="=+-@#")
numbers = st.lists(st.integers(-(10**17), 10**17), min_size=3, max_size=12, unique=True)
# Text ids that all look like whole numbers would come back as numbers: the last letter keeps them text.
texts = st.lists(st.text(letters, min_size=1), min_size=3, max_size=12, unique=True)
ids = st.one_of(numbers, texts.map(lambda some: [word + "z" for word in some]))


@given(data=st.data(), node_ids=ids)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_a_graph_survives_files_with_its_ids_weights_and_labels(
    data: st.DataObject, node_ids: list[Any], tmp_path: Path
) -> None:
    from scipy.sparse import coo_array

    from conjoint.data import from_any

    n = len(node_ids)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 2), st.floats(0.125, 8, width=32)), min_size=2))
    labels = data.draw(st.lists(st.sampled_from(["b", "a", ""]), min_size=n, max_size=n))
    row, weight = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=np.float32)
    matrix = coo_array((weight, (row, row + 1)), shape=(n, n))
    graph = from_any(matrix, x=np.eye(n), y=np.array(labels, dtype=object), node_ids=node_ids)
    has_weight = graph.edge_weight is not None
    for edges, nodes in (("e.csv", "n.csv"), ("e.parquet", "n.parquet"), ("g.npz", None)):
        where = None if nodes is None else tmp_path / nodes
        write_graph(graph, tmp_path / edges, where)
        options = {} if nodes is None else {"weight": "weight" if has_weight else None, "standardise": False}
        again = read_graph(tmp_path / edges, where, **options)  # type: ignore[arg-type]
        assert again.node_ids.tolist() == graph.node_ids.tolist()
        assert again.class_names == graph.class_names and torch.equal(again.y, graph.y)
        assert torch.equal(again.edge_index, graph.edge_index)
        assert (again.edge_weight is None) == (graph.edge_weight is None)
        if again.edge_weight is not None and graph.edge_weight is not None:
            assert torch.equal(again.edge_weight, graph.edge_weight)
        assert as_graph(again).fingerprint == as_graph(graph).fingerprint


@pytest.mark.parametrize("nodes", [b"id,label\na,x\nb,y\n", b"id,v\na,1\nb,1\n"], ids=["none", "constant"])
def test_a_graph_without_features_gets_some_and_says_so(nodes: bytes, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes(b"source,target\na,b\n")
    (tmp_path / "nodes.csv").write_bytes(nodes)
    graph = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv")
    assert graph.num_features == 1 and "features: spectral:1 made from the edges, seed 0" in graph.notes
