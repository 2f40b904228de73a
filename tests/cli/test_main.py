"""The command as a whole: help, exit codes, streams, manners. Real processes where those matter."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conjoint.cli import VERBS, main, make_parser

COMMAND = [sys.executable, "-m", "conjoint"]


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload]
        [*COMMAND, *arguments],
        check=False,
        **{"capture_output": True, "text": True, "timeout": 200, **options},
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([verb, "--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert text.count(f"conjoint {verb}") >= 3  # the usage line and two examples or more
    assert "examples:" in text
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_are_commands_that_exist(verb: str) -> None:
    examples = VERBS[verb].EXAMPLES.replace("\\\n", " ").splitlines()
    commands = [
        line.split("conjoint ", 1)[1] for line in examples if line.startswith("  ") and "conjoint " in line
    ]
    assert commands
    for line in commands:
        make_parser().parse_args(shlex.split(line.split("   ")[0]))


def test_no_verb_and_unknown_verb(refuse: Callable[..., str]) -> None:
    assert "VERB" in refuse()
    said = refuse("trian")
    assert "'trian'" in said and "train" in said and "predict" in said


def test_unknown_options_are_one_line(refuse: Callable[..., str]) -> None:
    assert "'--epoch=3' is not understood; did you mean --epochs?" in refuse("train", "--epoch=3")
    assert "'more' is not understood; see `conjoint train --help`" in refuse("train", "cora", "more")
    assert "--epochs: 'many' is not a whole number" in refuse("train", "--epochs", "many")
    assert "choose from" in refuse("plot", "run", "--map", "umap")


def test_help_and_version_start_without_torch() -> None:
    code = (
        "import sys; from conjoint.cli import main\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "print(*{'torch', 'numpy', 'matplotlib', 'polars', 'sklearn'} & set(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr == "\n"
    assert "usage: conjoint train" in ran.stdout


def test_streams_and_exit_codes_of_a_real_process(tmp_path: Path) -> None:
    wrong = command("train", "--lambda", "-1", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("conjoint: penalty_weight=-1.0") and wrong.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_early_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = command("datasets", stdout=write_end, stderr=subprocess.PIPE, capture_output=False)
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_results_that_cannot_be_written_are_told() -> None:
    with open("/dev/full", "w") as full:
        ran = command("datasets", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert ran.returncode == 2
    assert ran.stderr == "conjoint: no space left on device; nothing more was written\n"


def test_letters_that_the_terminal_lacks_do_not_stop_it() -> None:
    ran = command("describe", "--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0


def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    def warn(options: object) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("slow\nand \x1b[31mred", stacklevel=1)

    monkeypatch.setattr(VERBS["doctor"], "work", warn)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().err == "conjoint: warning: slow\\nand \\x1b[31mred\n"


def test_ctrl_c_outside_training(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(VERBS["doctor"], "work", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "conjoint: interrupted\n"
