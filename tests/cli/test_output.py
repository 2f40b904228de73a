"""What leaves a command: text is shown and never obeyed; tables line up; progress never reaches stdout."""

import io
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.cli import output
from conjoint.cli.output import print_json, progress, table
from conjoint.text import clean, shorten

ROW = {"epoch": 3, "loss": 99.0, "prediction_loss": 0.5, "val_accuracy": 0.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    assert lines == ["id      n", "----- ---", "数学    1", "ab    100"]
    assert table([]) == ""


def test_what_is_piped_is_plain_and_never_wrapped() -> None:
    rows = [{"[bold]name": "[red]x[/red] :smile: https://a.b 12", "text": "a long word " * 40}]
    lines = table(rows).split("\n")
    assert lines[0].split() == ["[bold]name", "text"]
    assert lines[2:] == [f"[red]x[/red] :smile: https://a.b 12  {'a long word ' * 39}a long word"]


def test_a_terminal_gets_lines_that_fit_and_no_command_from_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    for name, value in {"TERM": "xterm", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    shown = table([{"id": "[red]x\x1b[2J", "text": "word " * 20}])
    assert "\x1b[1mid" in shown and "\x1b[2J" not in shown and "[red]x\\x1b[2J" in shown
    assert len(shown.split("\n")) > 3  # wrapped
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in table([{"id": "x"}])


def test_json_is_ascii_and_knows_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": np.float32(0.5), "b": np.int64(3), "c": "żó\x1b"})
    out = capsys.readouterr().out
    assert out.isascii() and "\x1b" not in out
    assert json.loads(out) == {"a": 0.5, "b": 3, "c": "żó\x1b"}


def test_quiet_is_silent() -> None:
    with progress("title", 10, quiet=True) as show:
        assert show is None


def test_a_log_gets_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("title", 10, quiet=False) as show:
        assert show is not None
        show(ROW)
        assert capsys.readouterr() == ("", "")
        monkeypatch.setattr(output, "SECONDS_BETWEEN_LINES", 0.0)
        show(ROW)
    assert capsys.readouterr() == ("", "title: epoch 3/10, loss 0.50, val. 25.0%\n")


def test_a_terminal_gets_a_bar_and_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress("[bold]graph", 10, quiet=False) as show:
        assert show is not None
        show(ROW)
    shown = screen.getvalue()
    assert "[bold]graph" in shown and "3/10" in shown and "loss 0.50" in shown
    assert capsys.readouterr().out == ""
