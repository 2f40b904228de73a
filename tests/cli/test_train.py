"""conjoint train: folders, seeds, resuming, and what is refused with nothing lost."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint.cli import main
from conjoint.selection.portfolio import encode_judged
from own_files import CLASSES, train_arguments, write_own_files

Ask = Callable[..., Any]


def test_a_run_folder_holds_everything(own_run: Path) -> None:
    here = {path.name for path in own_run.iterdir()}
    assert {"config.toml", "metrics.jsonl", "model.json", "weights.safetensors", "node_ids.npy"} <= here
    assert {"result.json", "predictions.csv", "plots"} <= here
    drawn = {path.name for path in (own_run / "plots").iterdir()}
    assert drawn == {"learning.png", "attention.png", "mix.png", "map.png", "confusion.png"}
    row = json.loads((own_run / "result.json").read_text())
    assert row["epochs"] == 12 and row["model"] == "cat-i-mf" and 0 <= row["val_accuracy"] <= 1
    assert row["split"] == "all" and row["estimate"]["accuracy"] == row["val_accuracy"]
    assert not {"test_accuracy", "test_metrics"} & row.keys()
    sidecar = json.loads((own_run / "model.json").read_text())
    assert sorted(sidecar["class_names"]) == sorted(CLASSES)
    table = (own_run / "predictions.csv").read_text()
    assert table.startswith("id,part,label,predicted,probability\n") and "'=HYPERLINK(1)" in table


def test_the_table_ends_with_what_to_try_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_own_files(tmp_path)
    arguments = train_arguments(tmp_path, "--seeds", "2", "--epochs", "3", "--no-plots")
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    head = next(line for line in out.splitlines() if line.startswith("seed"))
    assert "mean ± 95% CI" in out and head.split() == ["seed", "unseen", "epochs", "seconds"]
    assert (
        "all 54 labelled nodes train; a first training without 11 of them chose the epochs by 6 and is" in out
    )
    assert err.count("trains twice: first without some labels") == 1
    assert f"conjoint predict {tmp_path / 'out'} --out predictions.csv" in out
    assert "\x1b" not in out + err
    assert "undirected" in err  # what was assumed about the graph


def test_several_seeds_and_their_spread(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    out = tmp_path / "out"
    made = ask(
        *train_arguments(tmp_path, "--seed", "3", "--seeds", "2", "--epochs", "3", "--no-plots", "--out", out)
    )
    assert [row["seed"] for row in made["rows"]] == [3, 4]
    assert [row["run"] for row in made["rows"]] == [str(out / "seed-3"), str(out / "seed-4")]
    mean = sum(row["val_accuracy"] for row in made["rows"]) / 2
    assert made["summary"]["val_accuracy"]["mean"] == pytest.approx(mean)
    assert len({row["split_seed"] for row in made["rows"]}) == 1


def test_resplit_gives_each_seed_its_own_split(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    made = ask(
        *train_arguments(
            tmp_path, "--seeds", "2", "--epochs", "2", "--no-plots", "--resplit", "--out", tmp_path / "o"
        )
    )
    assert [row["split_seed"] for row in made["rows"]] == [0, 1]


def test_default_folders_are_numbered_and_json_is_alone(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = train_arguments(tmp_path, "--seed", "0", "--epochs", "2", "--no-plots")
    assert [ask(*arguments)["out"] for _ in range(2)] == ["runs/edges-cat-i-mf-1", "runs/edges-cat-i-mf-2"]


def test_a_runs_config_makes_the_same_run_again(tmp_path: Path, own_run: Path, ask: Ask) -> None:
    made = ask("train", "--config", own_run / "config.toml", "--out", tmp_path / "again", "--no-plots")
    before, now = (json.loads((path / "model.json").read_text()) for path in (own_run, tmp_path / "again"))
    assert made["rows"][0]["epochs"] == 12
    assert before["weights_sha256"] == now["weights_sha256"]


def test_an_existing_folder_is_never_touched(own_run: Path, refuse: Callable[..., str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in own_run.rglob("*")}
    assert "never overwritten" in refuse(*train_arguments(own_run.parent, "--epochs", "2", "--out", own_run))
    assert before == {path: path.stat().st_mtime_ns for path in own_run.rglob("*")}


def test_resuming_takes_no_other_settings(own_run: Path, refuse: Callable[..., str]) -> None:
    assert "leave out --lr" in refuse("train", "--resume", own_run, "--lr", "0.1")
    assert "leave out cora" in refuse("train", "cora", "--resume", own_run)
    assert "no such run folder" in refuse("train", "--resume", own_run / "nothing")


def test_resuming_a_finished_run_reads_it(own_run: Path, ask: Ask) -> None:
    before = (own_run / "weights.safetensors").read_bytes()
    row = ask("train", "--resume", own_run, "--no-plots")["rows"][0]
    assert row["epochs"] == 12 and (own_run / "weights.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: text.replace("topic", "hobby", 1), "topic"),
        (lambda text: "", "empty"),
        (lambda text: text.splitlines()[0] + "\n", ""),
    ],
)
def test_bad_node_tables_are_one_line(
    tmp_path: Path, refuse: Callable[..., str], edit: Callable[[str], str], words: str
) -> None:
    _, nodes = write_own_files(tmp_path)
    nodes.write_text(edit(nodes.read_text()))
    assert words in refuse(*train_arguments(tmp_path, "--out", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/full").exists(), reason="needs root to mount")
def test_a_full_disk_loses_nothing(tmp_path: Path, refuse: Callable[..., str]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        write_own_files(tmp_path)
        said = refuse(*train_arguments(tmp_path, "--seed", "0", "--quiet", "--out", str(disk / "run")))
        assert "no space left" in said
        left = list(disk.iterdir())
        assert left == [] or left == [disk / "run"]  # a whole run folder to resume, or nothing
        assert not list(disk.rglob("*.tmp")) and not list(disk.rglob("*.starting"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_folder_is_told(tmp_path: Path, refuse: Callable[..., str]) -> None:
    write_own_files(tmp_path)
    said = refuse(*train_arguments(tmp_path, "--seed", "0", "--quiet", "--out", "/proc/nothing/run"))
    assert "/proc/nothing/run" in said


def test_ctrl_c_leaves_a_run_that_ends_the_same(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    arguments = train_arguments(
        tmp_path, "--seeds", "2", "--epochs", "40", "--patience", "0", "--no-plots", "--quiet"
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    ask(*arguments, "--out", whole)
    code = (
        "import os, signal, sys\n"
        "from conjoint.training.runs import Run\n"
        "kept = Run.append\n"
        "def append(run, row):\n"
        "    kept(run, row)\n"
        "    if row['epoch'] == 7 and run.config.seed == 1: os.kill(os.getpid(), signal.SIGINT)\n"
        "Run.append = append\n"
        "from conjoint.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--out", str(cut)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130
    assert ran.stderr == f"conjoint: stopped after epoch 7; go on with: conjoint train --resume {cut}\n"
    ask("train", "--resume", cut, "--no-plots")
    for seed in ("seed-0", "seed-1"):
        for file in ("weights.safetensors", "metrics.jsonl"):
            assert (whole / seed / file).read_bytes() == (cut / seed / file).read_bytes()


def test_class_weights_are_kept_with_the_run(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    for words, kept in (("balanced", '"balanced"'), (f"{CLASSES[0]}=2.5", "2.5")):
        out = tmp_path / words.partition("=")[2] if "=" in words else tmp_path / words
        options = [
            "--class-weight",
            words,
            "--seed",
            "0",
            "--epochs",
            "3",
            "--no-plots",
            "--no-report",
            "--out",
            out,
        ]
        ask(*train_arguments(tmp_path, *options))
        assert kept in (out / "config.toml").read_text()
        ask("train", "--resume", out)
        ask(
            "train",
            "--config",
            out / "config.toml",
            "--no-plots",
            "--no-report",
            "--out",
            tmp_path / f"again-{out.name}",
        )
        weights = [folder / "weights.safetensors" for folder in (out, tmp_path / f"again-{out.name}")]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("equal", "--class-weight equal: write balanced, or CLASS=WEIGHT"),
        ("a=b", "--class-weight a=b: write balanced, or CLASS=WEIGHT"),
        ("nobody=2", "--class-weight nobody: no class is called so; there are"),
        (f"{CLASSES[0]}=0", "class_weight="),
    ],
)
def test_bad_class_weights_are_named_before_anything_is_kept(
    words: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own_files(tmp_path)
    out = tmp_path / "out"
    assert main([*train_arguments(tmp_path), "--class-weight", words, "--out", str(out)]) == 2
    assert says in capsys.readouterr().err and not out.exists()


@pytest.mark.parametrize("model", ["logistic", "boosting", "label-propagation"])
def test_models_without_epochs_by_their_names_alone(model: str, tmp_path: Path) -> None:
    """The report has no curve to draw; the folder predicts what training wrote down."""
    write_own_files(tmp_path)
    out, again = tmp_path / "out", tmp_path / "again.csv"
    edges, nodes = str(tmp_path / "edges.csv"), str(tmp_path / "nodes.csv")
    given = ["train", "--edges", edges, "--nodes", nodes, "--label", "topic", "--model", model]
    assert main([*given, "--seeds", "1", "--no-plots", "--out", str(out)]) == 0
    assert (out / "report.html").stat().st_size > 1000
    assert main(["predict", str(out), "--out", str(again)]) == 0
    rows = [line.split(",")[:5] for line in (out / "predictions.csv").read_text().splitlines()]
    assert [line.split(",")[:5] for line in again.read_text().splitlines()] == rows and len(rows) > 10


def test_judged_nodes_of_another_graph_are_refused(
    own_run: Path, tmp_path: Path, refuse: Callable[..., str]
) -> None:
    copy = Path(shutil.copytree(own_run, tmp_path / "copy"))
    for nodes, classes in ((np.arange(58, 61), 3), (np.arange(3), 4)):
        shares = np.full((3, classes), 1 / classes)
        (copy / "judged.safetensors").write_bytes(encode_judged((nodes, shares)))
        assert "judged.safetensors: of another graph or damaged" in refuse("plot", copy)


def test_few_labels_are_trained_on_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_own_files(tmp_path, unlabelled=51)
    assert (
        main([*train_arguments(tmp_path, "--seed", "0", "--epochs", "3"), "--out", str(tmp_path / "r")]) == 0
    )
    out, err = capsys.readouterr()
    assert "all 9 labelled nodes train, too few to judge by" in out and "trains twice" not in err
    assert "unseen" not in out and not (tmp_path / "r" / "judged.safetensors").exists()


def test_a_split_that_is_named_is_trained_on_once(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    made = ask(
        *train_arguments(tmp_path, "--seed", "0", "--epochs", "3", "--split", "hold-out"),
        "--out",
        tmp_path / "r",
    )
    row = made["rows"][0]
    assert row["split"] == "hold-out" and "test_accuracy" in row and "estimate" not in row
    sizes = json.loads((tmp_path / "r" / "model.json").read_text())["split_sizes"]
    assert sum(sizes) == 54 and sizes[0] < 54 and not (tmp_path / "r" / "judged.safetensors").exists()
