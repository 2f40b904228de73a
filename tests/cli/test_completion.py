"""Completion as real shells do it, from what `conjoint completion` prints."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conjoint.benchmark_files import BENCHMARKS, editions
from conjoint.cli import main
from conjoint.cli.options import TABLE, VERBS
from conjoint.graph.splits import SPLITS
from conjoint.nn.names import MODELS
from conjoint.training import RULES
from conjoint.training.metrics import METRICS


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def script(shell: str, folder: Path) -> Path:
    """Printed by a process of its own, which imports nothing but Python's library."""
    code = (
        "import sys; from conjoint.cli import main; main(['completion', sys.argv[1]])\n"
        "sys.exit(' '.join({'torch', 'numpy', 'polars', 'rich'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code, shell], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "script").write_text(done.stdout)
    return folder / "script"


def bash(folder: Path, *words: str) -> list[str]:
    """COMPREPLY for a line of these words, the cursor after the last one."""
    line = " ".join(map(shlex.quote, words))
    code = f"source {folder}/script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _conjoint"
    code += '; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@needs("bash")
def test_bash(tmp_path: Path) -> None:
    script("bash", tmp_path)
    assert bash(tmp_path, "conjoint", "")[: len(VERBS)] == list(VERBS)
    assert bash(tmp_path, "conjoint", "tr") == ["train"]
    assert bash(tmp_path, "conjoint", "predict", "runs/x", "--new") == ["--new-nodes", "--new-edges"]
    assert bash(tmp_path, "conjoint", "train", "--strategy", "") == ["implicit", "explicit"]
    assert bash(tmp_path, "conjoint", "train", "--strategy", "=", "e") == ["explicit"]
    assert bash(tmp_path, "conjoint", "train", "--strategy", "=") == ["implicit", "explicit"]
    assert bash(tmp_path, "conjoint", "train", "") == list(BENCHMARKS)
    assert bash(tmp_path, "conjoint", "train", "--epochs", "") == []
    assert "rescat-i-mf" in bash(tmp_path, "conjoint", "train", "--model", "rescat-")
    assert bash(tmp_path, "conjoint", "completion", "z") == ["zsh"]
    for verb, groups in VERBS.items():
        flags = {flag for group in groups for flag in TABLE["groups"][group] if flag.startswith("--")}
        assert set(bash(tmp_path, "conjoint", verb, "--")) == flags | {"--help"}


def typed(shell: list[str], line: str, folder: Path) -> str:
    """What an interactive shell that has read ./start shows when `line`, Tabs among its keys, is typed."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execvpe(shell[0], shell, {**os.environ, "TERM": "dumb", "HOME": str(folder), "PS1": "? "})
    shown = b""
    try:
        for keys, awaited in (("source ./start\n", b"@ "), (f"{line}\n", b">.")):
            os.write(terminal, keys.encode())
            until = time.monotonic() + 60
            while awaited not in shown and time.monotonic() < until:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096)
    finally:
        os.close(terminal)  # hangs the shell up
        os.waitpid(child, 0)
    return shown.decode(errors="replace")


@pytest.mark.parametrize(
    ("shell", "before"),
    [
        pytest.param(["bash", "--norc", "-i"], "", marks=needs("bash"), id="bash"),
        pytest.param(["zsh", "-f", "-i"], "autoload -U compinit; compinit -u", marks=needs("zsh"), id="zsh"),
    ],
)
def test_a_tab_in_a_terminal(shell: list[str], before: str, tmp_path: Path) -> None:
    script(shell[0], tmp_path)
    (tmp_path / "my links.csv").touch()
    (tmp_path / "folder").mkdir()
    show = "conjoint() { printf '<%s>' \"$@\"; echo .; }"  # in place of the command: shows its arguments
    (tmp_path / "start").write_text(f"{before}\n{show}\nsource ./script\nPS1='@ '\n")
    for line, expected in (
        ("conjoint tra\t--dry\t--strat\texp\t", "<train><--dry-run><--strategy><explicit>"),
        ("conjoint train --edges my\t", "<train><--edges><my links.csv>"),
        ("conjoint predict fol\t", "<predict><folder"),
    ):
        shown = typed(shell, line, tmp_path)
        assert expected in shown.replace("=", "><"), shown  # zsh joins them


@needs("fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("conjoint tra", ["train"]),
        ("conjoint train --strategy ", ["explicit", "implicit"]),
        ("conjoint train --strat", ["--strategy"]),
        ("conjoint predict runs/x --new-e", ["--new-edges"]),
        ("conjoint train cite", ["citeseer"]),
        ("conjoint train --edges li", ["links.csv"]),
    ],
)
def test_fish(line: str, expected: list[str], tmp_path: Path) -> None:
    script("fish", tmp_path)
    (tmp_path / "links.csv").touch()
    command = ["fish", "--no-config", "-c", f"source script; complete -C {shlex.quote(line)}"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        check=True,
    )
    assert sorted(row.split("\t")[0] for row in done.stdout.splitlines()) == expected


def test_values_are_those_that_there_are() -> None:
    groups = TABLE["groups"]
    assert set(groups["split"]["--split"]["values"]) == set(SPLITS)
    assert set(groups["ensemble"]["--metric"]["values"]) == set(METRICS)
    assert set(groups["training"]["--rule"]["values"]) == set(RULES)
    known = {edition for name in BENCHMARKS for edition in editions(name)}
    assert set(groups["graph"]["--edition"]["values"]) <= known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_in_every_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert {*VERBS, *MODELS} <= set(re.findall(r"[\w-]+", text))
    flags = {flag for group in TABLE["groups"].values() for flag in group if flag.startswith("--")}
    assert [flag for flag in flags if (flag if shell != "fish" else f"-l {flag[2:]} ") not in text] == []
