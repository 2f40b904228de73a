"""Files as they are in practice: each ends in the right graph and a note, or in one line with the remedy.

`docs/messy.md` tells of each way; a test holds that page and this list together.
"""

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint.data import read_graph
from conjoint.data.own import read_new_nodes
from conjoint.errors import InputError
from conjoint.graph.graph import Graph

COUNT = 30
IDS = [f"n{k}" for k in range(COUNT)]
HEADER = "source,target\n"
EDGES = HEADER + "".join(f"n{k},n{(k + 1) % COUNT}\n" for k in range(COUNT))
NUMBERS = [f"{k}.5" for k in range(COUNT)]


def nodes(name: str, cells: list[str]) -> str:
    rows = (f"{id},{'ab'[k % 2]},{k * k % 17},{cells[k]}\n" for k, id in enumerate(IDS))
    return f"id,label,size,{name}\n" + "".join(rows)


GOOD = nodes("v", NUMBERS)


@dataclass(frozen=True)
class Way:
    """Two files, and what becomes of them: a refusal, or a graph with a note and maybe a kind of a column."""

    table: str | bytes = GOOD
    edges: str | bytes = EDGES
    options: dict[str, Any] = field(default_factory=dict)
    refused: str = ""  # a pattern of the one line
    note: str = ""  # within a note
    column: str = ""
    taken: str = ""  # how what is said about the column begins
    same: bool = False  # as the graph of the tidy files
    holds: Callable[[Graph], bool] = lambda graph: True


def column(cells: list[str], taken: str, note: str, name: str = "v", **more: Any) -> Way:
    return Way(nodes(name, cells), column=name, taken=taken, note=note, **more)


def feature(graph: Graph, name: str) -> Any:
    assert graph.feature_names is not None
    return graph.x.to_dense()[:, graph.feature_names.index(name)].numpy()


def rises(graph: Graph, name: str = "v") -> bool:
    return bool((np.diff(feature(graph, name)) > 0).all())


def edge_count(wanted: int) -> Callable[[Graph], bool]:
    return lambda graph: graph.num_edges == 2 * wanted


MANY = [f"c{k % 1200}" for k in range(3000)]
FEW_IDS = "id,v\n19,1.5\n20,2.5\n21,4.5\n"
ONE_LABEL = GOOD.replace("n4,a", "n4,c")

WAYS: dict[str, Way] = {
    # cells
    "an empty cell among numbers": column(["", *NUMBERS[1:]], "number, 1 empty cell filled", "the median"),
    "NaN among numbers": column(["NaN", *NUMBERS[1:]], "number, 1 empty cell", "'NaN' (1) in 'v'"),
    "NA, ? or null among numbers": column(["NA", "?", "null", *NUMBERS[3:]], "number, 3 empty", "'?' (1)"),
    "an infinite number": column(["inf", *NUMBERS[1:]], "number, 1 empty", "taken as empty: 'inf'"),
    "a word among numbers": column(["twelve", *NUMBERS[1:]], "number, 1 empty", "'twelve' in 'v'"),
    "a decimal comma": column([f'"{k},25"' for k in range(30)], "number, a decimal comma", "", holds=rises),
    "a decimal comma, and NA": column(
        ["NA", *(f'"{k},25"' for k in range(1, 30))], "number, a decimal comma, 1 empty", "'NA' (1)"
    ),
    "commas between thousands": column(
        [f'"{k + 1},000"' for k in range(30)], "number, a comma between", "", holds=rises
    ),
    "per cent signs": column([f"{k}%" for k in range(30)], "number", "standardised 2", holds=rises),
    "signs of currencies": column([f"${k}.10" for k in range(30)], "number", "standardised 2", holds=rises),
    "dates": column(
        [f"20{k:02}-03-{1 + k % 28:02}" for k in range(30)],
        "date with weekday and month as cycles",
        "days since the earliest",
        holds=rises,
    ),
    "dates with a time of day": column(
        [f"2021-03-{1 + k // 2:02}T{12 * (k % 2):02}:30:00Z" for k in range(30)],
        "date with hour",
        "",
        holds=rises,
    ),
    "03/04/2020: which is the month?": column(
        [f"{1 + k % 12:02}/{1 + k // 12:02}/2020" for k in range(30)], "date, read as %m/%d/%Y, though", ""
    ),
    "yes and no": column(["yes", "no"] * 15, "yes/no", "standardised 2"),
    "white space around words": column([" x ", "y "] * 15, "category, 2 values", ""),
    "thousands of categories": Way(
        "id,label,city\n" + "".join(f"n{k},{'ab'[k % 2]},{city}\n" for k, city in enumerate(MANY)),
        column="city",
        taken="category, 1000 values",
        note="only the 999 most frequent",
    ),
    "prose": column([f"word{k} and more{k}" for k in range(30)], "text", "read as text"),
    # columns that tell nothing
    "a second id": column([str(900 + 7 * k) for k in range(30)], "left out: an id", "numeric=", "page_id"),
    "row numbers": column([str(k) for k in range(30)], "left out: an identifier", "an identifier"),
    "a name for every row": column([f"x{k}z" for k in range(30)], "left out: an id", "text=", "key"),
    "a column that names a split": column(["train", "test", "val"] * 10, "left out: a split", "split=v"),
    "the same in every row": column(["x"] * 30, "left out: constant", "left out as constant"),
    "a column without a cell": column([""] * 30, "left out: empty", "left out as empty"),
    # labels
    "labels NA and ?": Way(
        GOOD.replace("n4,a", "n4,NA").replace("n5,b", "n5,?"),
        note="labels taken for missing",
        holds=lambda graph: graph.class_names == ["a", "b"] and graph.y[4:6].tolist() == [-1, -1],
    ),
    "labels -1": Way(GOOD.replace("n4,a", "n4,-1"), note="-1 is a class here; if it means"),
    "a class with one label": Way(ONE_LABEL, note="too few labels to learn: 'c' (1)"),
    "classes A and a": Way(GOOD.replace("n4,a", "n4,A"), note="differ in capital letters alone: 'A' and 'a'"),
    "a target that is a quantity": Way(
        nodes("t", [f"{k}.25" for k in range(30)]), options={"label": "t"}, refused="a quantity.*as_classes="
    ),
    "labels a|b": Way(
        nodes("t", ["x", "y", "z", "x|y", "y|z"] * 6), options={"label": "t"}, refused="several labels in one"
    ),
    "a label for every node": Way(
        "id,topic\n" + "".join(f"n{k},t{k}\n" for k in range(40)),
        options={"label": "topic"},
        refused="a name of nearly every node",
    ),
    # files
    "Latin-1": Way(nodes("v", ["café", "thé"] * 15).encode("latin-1"), refused="encoding=cp1252"),
    "Latin-1, and said so": Way(
        nodes("v", ["café", "thé"] * 15).encode("latin-1"),
        options={"encoding": "cp1252"},
        note="read as cp1252",
        holds=lambda graph: "v=café" in (graph.feature_names or []),
    ),
    "UTF-16": Way(GOOD.encode("utf-16"), note="read as utf-16", same=True),
    "a byte order mark": Way(b"\xef\xbb\xbf" + GOOD.encode(), same=True),
    "semicolons between cells": Way(GOOD.replace(",", ";"), same=True),
    "tabs, though it is called .csv": Way(GOOD.replace(",", "\t"), same=True),
    "gzipped, though not called so": Way(gzip.compress(GOOD.encode()), same=True),
    "line ends of an old spreadsheet": Way(GOOD.replace("\n", "\r"), same=True),
    "a separator too many in every row": Way(
        GOOD.replace("\n", ",\n").replace("v,\n", "v\n", 1), note="a comma too many", same=True
    ),
    "empty rows": Way(GOOD + ",,,\n,,,\n", note="left out 2 empty rows", same=True),
    "a row twice": Way(GOOD + "n3,b,9,3.5\n", note="1 row that repeat", same=True),
    "two rows of a node that differ": Way(GOOD + "n3,a,1,2\n", refused="stands in row 4 and again in row 31"),
    "a column name twice": Way(GOOD.replace("size", "v"), note="'v' stands more than once"),
    "white space around column names": Way(GOOD.replace("id,label,size,v", "id, label ,size, v"), same=True),
    "the index of a data frame": Way(
        "\n".join(f"{'' if k == 0 else k - 1},{line}" for k, line in enumerate(GOOD.splitlines())) + "\n",
        column="",
        taken="left out: an identifier",
        holds=lambda graph: graph.feature_names == ["size", "v"],
    ),
    "a row with a cell too many": Way(GOOD + "n99,a,1,2,3\n", refused="not a comma-separated table: line 32"),
    "quotes with commas and line ends in them": Way(
        nodes("v", [f'"one, two\nand {k}"' for k in range(30)]), column="v", taken="text"
    ),
    "a workbook called .csv": Way(b"PK\x03\x04" + bytes(60), refused="a workbook .save the sheet as CSV"),
    "no header over text ids of edges": Way(
        edges=EDGES.partition("\n")[2], note="is an edge and no header", same=True
    ),
    "no header over numbers": Way(
        FEW_IDS, "19,20\n20,21\n", note="read as data and not as a header", holds=edge_count(2)
    ),
    # edges
    "ids 000019 and 19": Way(
        FEW_IDS, "source,target\n000019,000020\n", note="'000019' is 19", holds=edge_count(1)
    ),
    "ids 19.0 and 19": Way(FEW_IDS, "source,target\n19.0,20.0\n", note="'19.0' is 19", holds=edge_count(1)),
    "edges that name another column": Way(
        nodes("code", [f"k{7 * k}" for k in range(30)]), "source,target\nk0,k7\nk14,k21\n", refused="id=code"
    ),
    "an edge to an unknown node": Way(
        edges=EDGES + "n0,zz\n", refused="row 31, .*'zz' is not in .*drop_unknown=True"
    ),
    "an edge without an end": Way(edges=EDGES + "n0,\n", refused="row 31, column 'target': no id; fill it"),
    "negative weights": Way(
        edges="source,target,w\nn0,n1,-2\n",
        options={"weight": "w"},
        refused="row 1, .*-2 is a negative weight",
    ),
    "self-loops": Way(edges=EDGES + "n0,n0\n", note="dropped 1 self-loop", same=True),
    "an edge twice": Way(edges=EDGES + "n0,n1\n", note="dropped 1 duplicate", same=True),
    "an edge in both directions": Way(edges=EDGES + "n1,n0\n", same=True),
    "several faults at once": Way(
        GOOD,
        "source,target,w\nn0,n1,-2\nn0,n2,x\nn0,zz,1\n",
        {"label": "lable", "text": "bio", "weight": "w"},
        refused="'lable'.*did you mean 'label'.*'bio'",
    ),
}


def read(folder: Path, way: Way) -> Graph:
    for name, content in (("edges.csv", way.edges), ("nodes.csv", way.table)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_graph(folder / "edges.csv", folder / "nodes.csv", **way.options)


@pytest.mark.parametrize("name", WAYS)
def test_a_messy_file_gives_the_right_graph_or_one_line(name: str, tmp_path: Path) -> None:
    way = WAYS[name]
    if way.refused:
        with pytest.raises(InputError, match=way.refused) as error:
            read(tmp_path, way)
        assert "\n" not in str(error.value) and "Traceback" not in str(error.value)
        return
    graph = read(tmp_path, way)
    assert any(way.note in note for note in graph.notes), graph.notes
    if way.taken and way.column:
        assert graph.columns[way.column].startswith(way.taken), graph.columns
    if way.same:
        assert graph.fingerprint == read(tmp_path, Way()).fingerprint
    assert way.holds(graph)


def test_the_page_tells_of_every_way_and_of_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "messy.md").read_text("utf-8")
    told = re.findall(r"^\| (.+?) \| ", page, flags=re.M)
    told = [way.replace("\\|", "|").replace("`", "") for way in told if way not in ("the file has", "---")]
    assert sorted(told) == sorted(WAYS) and len(told) >= 40


def test_all_faults_of_both_files_are_told(tmp_path: Path) -> None:
    table = GOOD + "n3,a,1,2\n"
    edges = "source,target,w\nn0,n1,-2\nn0,n2,x\nn0,zz,1\n"
    with pytest.raises(InputError) as error:
        read(tmp_path, Way(table, edges, {"weight": "w"}))
    for said in (
        "'n3' stands in row 4 and again in row 31",
        "'x' is no finite number",
        "-2 is a negative weight",
        "'zz' is not in",
    ):
        assert said in str(error.value)


def test_new_nodes_tell_what_training_did_not_know_and_count_their_own_rows(tmp_path: Path) -> None:
    before = read(tmp_path, Way(nodes("city", ["Rome", "Oslo"] * 15)))
    given = {"edges": str(tmp_path / "edges.csv"), "nodes": str(tmp_path / "nodes.csv")}
    new, links = tmp_path / "new.csv", tmp_path / "links.csv"
    new.write_text("id,label,size,city\nm1,,3,Paris\n")
    links.write_text("source,target\nm1,n3\n")
    after = read_new_nodes(before, given, nodes=new, edges=links)
    assert any("training did not know" in note and "'Paris'" in note for note in after.notes)
    new.write_text("id,label,size,city\nm1,,3,Paris\nm1,,4,Rome\n")
    links.write_text("source,target\nm1,n3\nm1,zz\n")
    with pytest.raises(InputError) as error:
        read_new_nodes(before, given, nodes=new, edges=links)
    assert f"{new}: node id 'm1' stands in row 1 and again in row 2" in str(error.value)
    assert f"{links} row 2, column 'target': id 'zz'" in str(error.value)
