"""The default of `conjoint train`: its run folder serves every verb, and Ctrl-C or a kill loses nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjoint.cli import main
from own_files import train_arguments, write_own_files

Ask = Callable[..., Any]
OPTIONS = ("--trials", "12", "--epochs", "12", "--no-plots", "--no-report", "--quiet")


def arguments(folder: Path, *more: object) -> list[str]:
    return [*train_arguments(folder)[:7], *map(str, (*OPTIONS, *more))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensemble")
    write_own_files(folder)
    assert main(arguments(folder, "--out", folder / "run")) == 0
    return folder / "run"


def test_every_verb_works_on_it(run: Path, tmp_path: Path, ask: Ask) -> None:
    assert ask("predict", run, "--rows", "3")["nodes"] == 60
    assert main(["embed", str(run), "--out", str(tmp_path / "embedding.csv"), "--quiet"]) == 0
    assert len((tmp_path / "embedding.csv").read_text().splitlines()) == 61
    assert ask("cluster", run)
    assert main(["plot", str(run)]) == 0
    assert {"map.png", "confusion.png"} <= {path.name for path in (run / "plots").iterdir()}
    assert not (run / "members").exists()


def test_explain_tells_members_and_changes(run: Path, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    found = ask("explain", run, "n5")
    assert sum(one["weight"] for one in found["members"]) == pytest.approx(1.0)
    assert found["on_part"] == pytest.approx(found["probability"], abs=1e-4)
    assert found["without_own_features"] < found["probability"]
    assert main(["explain", str(run), "n5"]) == 0
    said = capsys.readouterr().out
    assert "if left out" in said and "without its own features" in said


def test_result_has_metrics_beside_the_majoritys_and_each_class(run: Path) -> None:
    row = json.loads((run / "result.json").read_text())
    assert row["majority"]["unseen"].keys() == row["estimate"].keys() - {"majority"}
    assert sum(one["nodes"] for one in row["classes"]["unseen"]) > 0


def test_damaged_judged_nodes_are_one_line(run: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    kept = (copy / "judged.safetensors").read_bytes()
    (copy / "judged.safetensors").write_bytes(kept[:-7])
    assert "judged.safetensors: not what a training wrote" in refuse("report", copy)
    (copy / "judged.safetensors").unlink()  # as an earlier version left it
    assert main(["report", str(copy)]) == 0


def test_new_nodes(run: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id," + ",".join(f"f{k}" for k in range(12)) + "\nnew," + ",".join(["0.5"] * 12) + "\n"
    )
    (tmp_path / "edges.csv").write_text("source,target\nnew,n5\nnew,n8\n")
    new = ["--new-nodes", str(tmp_path / "nodes.csv"), "--new-edges", str(tmp_path / "edges.csv")]
    assert main(["predict", str(run), *new, "--out", str(tmp_path / "p.csv"), "--quiet"]) == 0
    assert "new," in (tmp_path / "p.csv").read_text()


@pytest.mark.parametrize("stop", ["SIGINT", "SIGKILL"])
@pytest.mark.parametrize("at", ["finish", "append"])
@pytest.mark.parametrize("threads", [1, 2], ids=["alone", "side-by-side"])
def test_a_stopped_search_is_gone_on_with_to_the_same_bits(
    run: Path, tmp_path: Path, stop: str, at: str, threads: int, ask: Ask
) -> None:
    """`finish`: after the third training; `append`: within an epoch of a network. Side by side, a training's
    process stops the command's."""
    cut, folder = tmp_path / "cut", run.parent
    code = (
        "import contextlib, os, signal, sys\n"
        "from conjoint.training.runs import Run\n"
        f"kept, seen, command = Run.{at}, [], os.getpid()\n"
        "def stop(run, *rest):\n"
        "    kept(run, *rest)\n"
        "    seen.append(1)\n"
        "    with contextlib.suppress(FileExistsError):  # one of the processes presses, once\n"
        "        if len(seen) == 3:\n"
        f"            os.mkdir({str(tmp_path / 'pressed')!r}); os.kill(command, signal.{stop})\n"
        f"Run.{at} = stop\n"
        "from conjoint.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *arguments(folder, "--out", cut)]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == (0 if stop == "SIGINT" else -signal.SIGKILL), ran.stderr
    if stop == "SIGINT":
        assert "stopped early; --resume goes on with the rest" in ran.stdout
        assert ask("predict", cut, "--rows", "1")["nodes"] == 60
    ask("train", "--resume", cut, "--no-plots")
    for file in ("weights.safetensors", "predictions.csv"):
        assert (cut / file).read_bytes() == (run / file).read_bytes()
    assert not (cut / "members").exists()


def test_a_graph_folder_learns_what_its_tables_learn(tmp_path: Path, ask: Ask) -> None:
    edges, nodes = write_own_files(tmp_path)
    tables = ("--edges", edges, "--nodes", nodes, "--label", "topic")
    ask("ingest", *tables, "--out", tmp_path / "graph")
    limits = ("--trials", 2, "--no-plots", "--no-report")
    for graph, out in ((tables, "from-tables"), ((tmp_path / "graph",), "from-folder")):
        ask("train", *graph, *limits, "--out", tmp_path / out)
    found = [(tmp_path / out / "predictions.csv").read_text() for out in ("from-tables", "from-folder")]
    assert found[0] == found[1]
    assert json.loads((tmp_path / "from-folder" / "portfolio.json").read_text())["labels"] > 40


def test_what_labels_served_for_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_own_files(tmp_path)
    lines = []
    for more in ((), ("--split", "fraction")):
        assert main(arguments(tmp_path, "--out", tmp_path / f"run{len(more)}", *more)) == 0
        lines += [line for line in capsys.readouterr().out.splitlines() if "folds" in line]
    assert "labelled nodes train, in 10 folds; each is judged without itself" in lines[0]
    assert "split fraction: " in lines[1] and lines[1].endswith(" test; training nodes judge too, in 6 folds")
