"""conjoint diagnose: a table, a picture, a document, and one line for mistakes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from own_files import write_own_files


@pytest.fixture
def own(tmp_path: Path) -> list[str]:
    edges, nodes = write_own_files(tmp_path)
    return ["diagnose", "--edges", str(edges), "--nodes", str(nodes), "--label", "topic"]


def test_the_document_has_the_evidence_and_the_advice(own: list[str], ask: Callable[..., Any]) -> None:
    found = ask(*own)
    assert found["nodes"] == 60 and found["labelled_nodes"] < 54
    assert {"mf", "smooth", "spectral"} <= {one["name"] for one in found["evidence"]}
    assert found["shortlist"][:2] == ["zero", "mf"] and found["advice"]
    more = ask(*own, "--labels", "known")
    assert more["labelled_nodes"] > found["labelled_nodes"]


def test_the_table_and_the_picture(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*own, "--plot", str(tmp_path / "d.png")]) == 0
    said = capsys.readouterr().out
    assert "60 nodes" in said and "95% interval" in said and "auto" in said
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_told_first(own: list[str], refuse: Callable[..., str]) -> None:
    assert "must end in" in refuse(*own, "--plot", "picture.txt")
