"""What reaches the terminal is text, whatever was in the file."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.cli.terminal import print_json, table
from conjoint.printable import clean, shorten


@given(st.text())
def test_clean_text_is_printable_and_one_line(text: str) -> None:
    shown = clean(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0x202A <= ord(c) <= 0x202E for c in shown)


def test_plain_text_stays_as_it_is() -> None:
    assert clean("Ada Lovelace, żółć, 数学 [bold]") == "Ada Lovelace, żółć, 数学 [bold]"
    assert clean("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    assert shorten("abcdef", 4) == "abc…"


def test_columns_line_up_by_width_on_screen() -> None:
    lines = table([{"id": "数学", "n": 1}, {"id": "ab", "n": 100}], right=("n",)).splitlines()
    assert lines == ["id      n", "----  ---", "数学    1", "ab    100"]
    assert table([]) == ""


def test_json_is_ascii_and_knows_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": np.float32(0.5), "b": np.int64(3), "c": "żó\x1b"})
    out = capsys.readouterr().out
    assert out.isascii() and "\x1b" not in out
    assert json.loads(out) == {"a": 0.5, "b": 3, "c": "żó\x1b"}
