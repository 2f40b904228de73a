"""The command as a whole: help, exit codes, streams, manners. Real processes where those matter."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import conjoint.cli
from conjoint import defaults
from conjoint.cli import VERBS, doctor, main, make_parser
from conjoint.training import TrainConfig

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


@pytest.mark.parametrize("verb", [*VERBS, "conjoint"])
def test_the_examples_are_commands_that_exist(verb: str) -> None:
    told = tomllib.loads((Path(conjoint.cli.__file__).parent / "help.toml").read_text("utf-8"))
    examples = told[verb]["examples"].replace("\\\n", " ").splitlines()
    commands = [
        line.split("conjoint ", 1)[1] for line in examples if line.startswith("  ") and "conjoint " in line
    ]
    assert commands
    for line in (line for line in commands if not line.startswith("VERB ")):
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


HEAVY = {"torch", "torch_geometric", "numpy", "scipy", "sklearn", "polars", "matplotlib", "rich"}


def test_help_and_mistakes_are_answered_without_anything_heavy() -> None:
    commands = [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS), ["train", "--epochs", "x"]]
    code = (
        "import sys\nfrom conjoint.cli import main\n"
        f"for words in {commands}:\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        f"sys.exit(' '.join({HEAVY} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.count("usage: conjoint") == 1 + len(VERBS)
    assert (
        ran.stderr
        == "conjoint: argument --epochs: 'x' is not a whole number; see `conjoint train --help`\n\n"
    )


def test_the_defaults_that_help_tells_are_those_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    usual = TrainConfig()
    assert f"with {defaults.SEEDS} seeds:" in told
    assert f"default {usual.epochs}; in an ensemble" in told and f"default {usual.lr}; in an" in told
    assert f"{usual.rule} (default)" in told


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

    monkeypatch.setattr(doctor, "work", warn)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().err == "conjoint: warning: slow\\nand \\x1b[31mred\n"


def test_ctrl_c_outside_training(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "work", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "conjoint: interrupted\n"
