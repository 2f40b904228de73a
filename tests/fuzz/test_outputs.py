"""Names from a user's file go out again, to a terminal, a spreadsheet, a web page: shown, never obeyed."""

import csv
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conjoint.cli.output import table
from conjoint.data import write_table
from conjoint.experiments.report import build_report, html_table
from conjoint.experiments.tables import Cell, Table
from conjoint.text import clean
from fake_portrait import portrait
from fake_runs import made_up, specs

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
DANGEROUS = "\x1b]0;title\x07\x9b31m\u202e\u2028"
SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
FORMULA = "=cmd|'/C calc'!A0"


def acts_on_a_terminal(text: str) -> bool:
    return any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@given(ANY_TEXT)
@example(DANGEROUS)
def test_no_text_reaches_a_terminal_as_a_command(text: str) -> None:
    assert not acts_on_a_terminal(clean(text))
    assert all(not acts_on_a_terminal(line) for line in table([{text: text, "b": 1}]).split("\n"))
    assert table([{text: text, "b": 1}]).count("\n") == 2  # no line break of the text's own


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(NAMES, min_size=1, max_size=5), NAMES)
@example([FORMULA, "\t=1", "\r=1", "\n=1", "＝1"], "@SUM(1)")
def test_no_cell_of_a_table_is_run_by_a_spreadsheet(tmp_path: Path, cells: list[str], header: str) -> None:
    for name, mark in (("t.csv", ","), ("t.tsv", "\t")):
        write_table(tmp_path / name, {header: cells})
        with open(tmp_path / name, newline="", encoding="utf-8") as file:
            for row in csv.reader(file, delimiter=mark):
                assert len(row) <= 1 and not any(cell.startswith(tuple("=+-@\t\r\n＝＋－＠")) for cell in row)


class Elements(HTMLParser):
    """Every tag that a browser would see, and every attribute that would run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.risky: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or re.match(r"\s*javascript:", value or "", re.I):
                self.risky.append(f"{tag} {name}={value}")


def elements(page: str) -> Elements:
    found = Elements()
    found.feed(page)
    return found


@settings(max_examples=12)
@given(st.lists(ANY_TEXT, min_size=4, max_size=4))
@example([SCRIPT] * 4)
def test_no_name_becomes_part_of_the_page(names: list[str]) -> None:
    """Node ids, class names, a model's name, a version: the page has the same elements whatever they are."""
    ids, classes, model, version = names
    asked = portrait()
    usual = elements(build_report([made_up(specs(1)[0])], asked))
    hostile = asked | {"ids": [ids] * 4, "classes": [classes] * len(asked["classes"]), "model": model}
    row = made_up(specs(1)[0], made_with={"conjoint": version, "torch": version})
    page = build_report([row], hostile)
    found = elements(page)
    assert found.tags == usual.tags and found.risky == []
    assert page.count("<script") == 2 == page.count("</script>")


def test_a_cell_of_a_table_is_escaped() -> None:
    made = html_table(Table(SCRIPT, (SCRIPT,), ((Cell(SCRIPT, verdict=SCRIPT),),)))
    found = elements(made)
    assert found.risky == [] and "script" not in found.tags and "img" not in found.tags
