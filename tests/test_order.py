"""Imports go from right to left in the order of packages (`imports.ORDER`), and never in a circle."""

from pathlib import Path

from imports import against_the_order, all_cycles, imports_of, without_a_place

SOURCE = Path(__file__).resolve().parents[1] / "src" / "conjoint"
# What is still to be mended. Nothing may join these lists.
NO_PLACE_YET: set[str] = set()
AGAINST_IT_YET: set[tuple[str, str]] = set()
CYCLES_YET: list[set[str]] = []


def test_every_package_has_its_place() -> None:
    assert without_a_place(SOURCE) <= NO_PLACE_YET


def test_imports_go_to_the_left() -> None:
    found = against_the_order(imports_of(SOURCE))
    assert {pair: where for pair, where in found.items() if pair not in AGAINST_IT_YET} == {}


def test_there_are_no_cycles() -> None:
    assert [cycle for cycle in all_cycles(imports_of(SOURCE)) if cycle not in CYCLES_YET] == []


def test_the_reader_of_imports_sees_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "nn" / "inner").mkdir(parents=True)
    (tmp_path / "__init__.py").write_text("from .nn import gat\n")
    (tmp_path / "errors.py").write_text("import os\n")
    (tmp_path / "nn" / "__init__.py").write_text("from . import gat\nfrom .inner.deep import word\n")
    (tmp_path / "nn" / "gat.py").write_text("from ..errors import E\ndef f():\n    import conjoint.cli\n")
    (tmp_path / "nn" / "inner" / "deep.py").write_text("from conjoint.nn import gat\n")
    (tmp_path / "cli.py").write_text("if TYPE_CHECKING:\n    from .nn.inner import deep\n")
    found = {(one.module, one.target) for one in imports_of(tmp_path)}
    assert found == {
        ("", "nn.gat"),
        ("nn", "nn.gat"),
        ("nn", "nn.inner.deep"),
        ("nn.gat", "errors"),
        ("nn.gat", "cli"),
        ("nn.inner.deep", "nn.gat"),
        ("cli", "nn.inner.deep"),
    }
    assert set(against_the_order(imports_of(tmp_path))) == {("nn", "cli")}
    assert all_cycles(imports_of(tmp_path)) == [{"cli", "nn"}]
