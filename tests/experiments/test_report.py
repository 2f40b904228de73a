"""The report's text: self-contained, escaped, and without a number that is not in the rows."""

import json
import re
from html.parser import HTMLParser

import pytest

from conjoint.experiments.report import build_report
from conjoint.experiments.tables import tables_of
from fake_portrait import portrait
from fake_rows import rows_of_everything


class Cells(HTMLParser):
    """The text of every cell of every sortable table, table by table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table" and ("class", "sortable") in attrs:
            self.tables.append([])
        self.inside = tag in ("td", "th") or (self.inside and tag == "button")

    def handle_data(self, data: str) -> None:
        if self.inside and self.tables and data.strip():
            self.tables[-1].append(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


@pytest.fixture(scope="module")
def page() -> str:
    return build_report(rows_of_everything(), portrait())


def test_the_tables_of_the_page_are_those_made_from_the_rows(page: str) -> None:
    rows = rows_of_everything()
    found = Cells()
    found.feed(page)
    expected = tables_of("table1", rows)
    assert found.tables[: len(expected)] == [
        [*table.headers, *(entry.text for row in table.rows for entry in row)] for table in expected
    ]


def test_nothing_points_outside(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket", page)


def test_data_cannot_break_out_of_its_script() -> None:
    text = build_report([], portrait())
    start = text.index('id="portrait">') + len('id="portrait">')
    block = text[start : text.index("</script>", start)]
    assert json.loads(block) == portrait()
    assert "<" not in block


def test_without_rows_and_network_there_is_still_a_page() -> None:
    text = build_report([], None)
    assert "Made from 0 training runs." in text and "85.38 ± 0.16" in text
    assert '<script type="application/json" id="portrait">null</script>' in text


def test_the_same_rows_make_the_same_page(page: str) -> None:
    assert build_report(rows_of_everything(), portrait()) == page
