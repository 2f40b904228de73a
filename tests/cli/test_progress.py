"""Progress: a bar on a terminal, a line now and then in a log, nothing when quiet, never on stdout."""

import io
import sys

import pytest

from conjoint.cli import progress as module
from conjoint.cli.progress import progress

ROW = {"epoch": 3, "loss": 99.0, "prediction_loss": 0.5, "val_accuracy": 0.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
        monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
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
