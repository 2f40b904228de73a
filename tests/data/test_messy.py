"""Files as they are in practice: each ends in the right graph and a note, or in one line with the remedy."""

from pathlib import Path
from typing import Any

import pytest

from conjoint.data import read_graph
from conjoint.errors import InputError

IDS = [f"n{k}" for k in range(30)]
EDGES = "source,target\n" + "".join(f"n{k},n{(k + 1) % 30}\n" for k in range(30))


def nodes(name: str, cells: list[str]) -> str:
    rows = (f"{id},{'ab'[k % 2]},{k * k % 17},{cells[k]}\n" for k, id in enumerate(IDS))
    return f"id,label,size,{name}\n" + "".join(rows)


def read(folder: Path, table: str | bytes, edges: str = EDGES, **options: Any) -> Any:
    (folder / "edges.csv").write_text(edges)
    (folder / "nodes.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    return read_graph(folder / "edges.csv", folder / "nodes.csv", **options)


NUMBERS = [f"{k}.5" for k in range(30)]
# Cells of a column -> what it is taken for, and what a note says.
COLUMNS: dict[str, tuple[str, list[str], str, str]] = {
    "one empty cell": ("v", ["", *NUMBERS[1:]], "number, 1 empty cell filled", "filled with the median"),
    "NaN in a number": ("v", ["NaN", *NUMBERS[1:]], "number, 1 empty cell", "'NaN' (1) in 'v'"),
    "NA and ? in a number": ("v", ["NA", "?", *NUMBERS[2:]], "number, 2 empty", "'?' (1)"),
    "infinite": ("v", ["inf", *NUMBERS[1:]], "number, 1 empty", "no finite numbers, taken as empty: 'inf'"),
    "a typing error": ("v", ["twelve", *NUMBERS[1:]], "number, 1 empty", "'twelve' in 'v'"),
    "decimal comma": ("v", [f'"{k},25"' for k in range(30)], "number, a decimal comma", "standardised"),
    "thousands": ("v", [f'"{k + 1},000"' for k in range(30)], "number, a comma between", "standardised"),
    "per cent": ("v", [f"{k}%" for k in range(30)], "number", "standardised 2"),
    "currency": ("v", [f"${k}.10" for k in range(30)], "number", "standardised 2"),
    "dates": ("born", [f"2001-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(30)], "date", "days since"),
    "words for yes": ("v", ["yes", "no"] * 15, "yes/no", "standardised 2"),
    "spare id": ("page_id", [str(900 + 7 * k) for k in range(30)], "left out: an identifier", "--numeric"),
    "row numbers": ("nr", [str(k) for k in range(30)], "left out: an identifier", "an identifier"),
    "names of rows": ("key", [f"x{k}z" for k in range(30)], "left out: an identifier", "an identifier"),
    "a split": ("v", ["train", "test", "val"] * 10, "left out: a split", "left out as a split"),
    "constant": ("v", ["x"] * 30, "left out: constant", "left out as constant"),
    "nothing at all": ("v", [""] * 30, "left out: empty", "left out as empty"),
    "prose": ("v", [f"word{k} and more{k}" for k in range(30)], "text", "read as text"),
    "white space": ("v", [" x ", "y "] * 15, "category, 2 values", "standardised 1"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_is_taken_for_what_it_is(case: str, tmp_path: Path) -> None:
    name, cells, taken, note = COLUMNS[case]
    graph = read(tmp_path, nodes(name, cells))
    assert graph.columns[name].startswith(taken)
    assert any(note.replace("--numeric", "numeric=") in said for said in graph.notes), graph.notes
    assert graph.num_nodes == 30 and graph.num_edges == 60


GOOD = nodes("v", NUMBERS)
LABELS = {
    "quantity": [f"{k}.25" for k in range(30)],
    "several labels": ["x", "y", "z", "x|y", "y|z"] * 6,
}
REFUSED: dict[str, tuple[str | bytes, str, dict[str, Any], str]] = {
    "quantity": (nodes("t", LABELS["quantity"]), EDGES, {"label": "t"}, "a quantity.*as_classes=True"),
    "several labels": (nodes("t", LABELS["several labels"]), EDGES, {"label": "t"}, "several labels in one"),
    "Latin-1": (nodes("v", ["café", "thé"] * 15).encode("latin-1"), EDGES, {}, "encoding=cp1252"),
    "negative weight": (GOOD, "source,target,w\nn0,n1,-2\n", {"weight": "w"}, "row 1, .*negative weight"),
    "unknown node": (GOOD, EDGES + "n0,zz\n", {}, "row 31, .*'zz' is not in .*drop_unknown=True"),
    "two faults": (GOOD, EDGES, {"label": "lable", "text": "bio"}, "'lable'.*did you mean 'label'.*'bio'"),
    "two rows of a node": (GOOD + "n3,a,1,2\n", EDGES, {}, "stands in row 4 and again in row 31"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_guessed_is_one_line_with_the_remedy(case: str, tmp_path: Path) -> None:
    table, edges, options, said = REFUSED[case]
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path, table, edges, **options)
    assert "\n" not in str(error.value)


def test_labels_that_are_missing_are_no_class(tmp_path: Path) -> None:
    graph = read(tmp_path, GOOD.replace("n4,a", "n4,NA").replace("n5,b", "n5,?"))
    assert graph.class_names == ["a", "b"] and graph.y[4:6].tolist() == [-1, -1]
    assert any("labels taken for missing" in note for note in graph.notes)


def test_files_that_say_how_they_are_written_are_read(tmp_path: Path) -> None:
    expected = read(tmp_path, GOOD).fingerprint
    assert read(tmp_path, GOOD.encode("utf-16")).fingerprint == expected
    assert read(tmp_path, GOOD.encode("cp1252"), encoding="cp1252").fingerprint == expected
    assert read(tmp_path, GOOD + "n3,b,9,3.5\n" + ",,,\n").fingerprint == expected  # repeated and empty rows
    assert read(tmp_path, GOOD, EDGES.partition("\n")[2]).fingerprint == expected  # no header


def test_ids_with_leading_zeros_match(tmp_path: Path) -> None:
    graph = read(tmp_path, "id,v\n19,1\n20,2\n", "source,target\n000019,000020\n")
    assert graph.num_edges == 2 and any("'000019' is 19" in note for note in graph.notes)
