"""What can be asked of a trained run: predict, embed, cluster, explain, plot."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conjoint.cli import main
from own_files import CLASSES, ESCAPE, FORMULA, train_arguments, write_own_files
from small_training import NODES

Ask = Callable[..., Any]


def test_predict_writes_ids_classes_and_probabilities(own_run: Path, tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "p.parquet"
    assert ask("predict", own_run, "--out", out)["nodes"] == NODES
    table = pl.read_parquet(out)
    assert table["id"][:3].to_list() == [ESCAPE, FORMULA, "Ada Lovelace"]
    shares = table.select([f"p({name})" for name in sorted(CLASSES)]).to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    best = np.array(sorted(CLASSES))[shares.argmax(axis=1)]
    assert table["predicted"].to_list() == best.tolist()
    np.testing.assert_array_equal(table["probability"].to_numpy(), shares.max(axis=1))


def test_predict_csv_runs_no_formula(own_run: Path, tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "p.csv"
    ask("predict", own_run, "--out", out)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["id"] == "'" + FORMULA and len(rows) == NODES


def test_predict_the_unlabelled_alone(own_run: Path, ask: Ask) -> None:
    found = ask("predict", own_run, "--unlabelled", "--rows", "100")
    assert [row["id"] for row in found["rows"]] == [f"n{k}" for k in range(NODES - 6, NODES)]
    assert {row["label"] for row in found["rows"]} == {""}


def test_predictions_are_the_same_bits_in_another_process(own_run: Path, tmp_path: Path, ask: Ask) -> None:
    ask("predict", own_run, "--out", tmp_path / "here.parquet")
    there = tmp_path / "there.parquet"
    done = subprocess.run(
        [sys.executable, "-m", "conjoint", "predict", own_run, "--out", there, "-q"], check=False
    )
    assert done.returncode == 0
    assert pl.read_parquet(tmp_path / "here.parquet").equals(pl.read_parquet(there))


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet"])
def test_embed(own_run: Path, tmp_path: Path, ask: Ask, kind: str) -> None:
    out = tmp_path / f"e.{kind}"
    assert ask("embed", own_run, "--out", out) == {
        "run": str(own_run),
        "out": str(out),
        "nodes": NODES,
        "size": 8,
    }
    if kind == "npz":
        held = np.load(out, allow_pickle=False)
        assert held["embeddings"].shape == (NODES, 8) and held["ids"][2] == "Ada Lovelace"


def test_cluster_agrees_with_the_training_report(own_run: Path, tmp_path: Path, ask: Ask) -> None:
    found = ask("cluster", own_run, "--out", tmp_path / "c.csv")
    row = json.loads((own_run / "result.json").read_text())
    assert found["predicted"]["accuracy"] == row["all_accuracy"]
    assert found["nodes"] == NODES - 6 and found["k_means"]["accuracy"] is None
    assert found == ask("cluster", own_run, "--out", tmp_path / "c.csv")  # k-means takes a seed
    assert len((tmp_path / "c.csv").read_text().splitlines()) == NODES + 1


def test_explain_gives_changes_and_weights_that_sum_to_one(own_run: Path, tmp_path: Path, ask: Ask) -> None:
    plot, out = tmp_path / "why.png", tmp_path / "why.json"
    found = ask("explain", own_run, "Ada Lovelace", "--plot", plot, "--out", out)
    assert json.loads(out.read_text()) == found
    parts = ["feature", "structural", "conjoint"]
    assert list(found["neighbours"][0]) == ["id", "class", "predicted", "confidence", "change", *parts]
    for name in parts:
        assert sum(row[name] for row in found["neighbours"]) == pytest.approx(1, abs=1e-5)
    itself = [row for row in found["neighbours"] if row["change"] is None]
    assert [row["id"] for row in itself] == ["Ada Lovelace"]
    assert found["features"][0]["feature"].startswith("f")  # the columns are f0, f1, ...
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_names_stand_beside_ids_and_find_nodes(own_run: Path, ask: Ask, refuse: Callable[..., str]) -> None:
    shown = ask("explain", own_run, "Ada Lovelace", "--name-column", "f3")
    assert all(row["name"] for row in shown["neighbours"])
    assert ask("explain", own_run, shown["name"], "--name-column", "f3")["node"] == "Ada Lovelace"
    assert "--name-column nick" in refuse("explain", own_run, "n3", "--name-column", "nick")


def test_explain_by_an_id_with_escape_codes(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(own_run), ESCAPE, "--layer", "2"]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\\x1b[31mred" in out


def test_text_output_of_every_verb_is_clean(
    own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (
        ["predict"],
        ["cluster"],
        ["embed", "--out", tmp_path / "e.csv"],
        ["plot", "--map", "tsne"],
    ):
        assert main([str(arguments[0]), str(own_run), *map(str, arguments[1:])]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "more; --out FILE.csv writes them all" in out and "Hungarian" in out and "map.png" in out


def test_several_seeds_are_used_by_their_best_validation(tmp_path: Path, ask: Ask) -> None:
    write_own_files(tmp_path)
    out = tmp_path / "out"
    made = ask(*train_arguments(tmp_path, "--seeds", "2", "--epochs", "4", "--no-plots", "--out", str(out)))
    best = min(made["rows"], key=lambda row: row["val_loss"])
    assert ask("predict", out)["run"] == best["run"]


def test_models_without_attention_are_explained_too(
    tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own_files(tmp_path)
    out = tmp_path / "gcn"
    files = train_arguments(tmp_path)[:7]
    ask(*files, "--model", "gcn", "--epochs", "3", "--seed", "0", "--out", out)
    assert {path.name for path in (out / "plots").iterdir()} == {"learning.png", "map.png", "confusion.png"}
    found = ask("explain", out, "n3")
    assert found["attention"] == [] and "conjoint" not in found["neighbours"][0]
    assert main(["explain", str(out), "n3"]) == 0
    assert "without any edge" in capsys.readouterr().out


def test_bad_requests_are_one_line(own_run: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    cases: dict[tuple[object, ...], str] = {
        ("predict", tmp_path / "nothing"): "no such run folder",
        ("predict", own_run, "--out", tmp_path / "p.xlsx"): "must end in .csv, .tsv or .parquet",
        ("predict", own_run, "--out", tmp_path / "no" / "p.csv"): "no folder",
        ("predict", own_run, "--device", "tpu"): "--device tpu",
        ("embed", own_run): "--out",
        ("cluster", own_run, "--clusters", "0"): "--clusters 0",
        ("explain", own_run, "nobody"): "'nobody' is not in edges; its ids look like",
        ("explain", own_run, "n3", "--layer", "3"): "layers 1 to 2",
        ("explain", own_run, "n3", "--plot", tmp_path / "e.bmp"): "must end in .png",
        ("explain", own_run, "n3", "--out", tmp_path / "e.csv"): "must end in .json",
        ("explain", own_run, "n3", "--candidates", "0"): "--candidates 0",
        ("plot", own_run, "--edges", tmp_path / "gone.csv"): "gone.csv",
    }
    for arguments, words in cases.items():
        assert words in refuse(*arguments), arguments
    assert list(tmp_path.iterdir()) == []


def test_another_graph_is_refused(own_run: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    edges, nodes = write_own_files(tmp_path)
    edges.write_text("\n".join(edges.read_text().splitlines()[:-1]) + "\n")
    assert "trained on another graph" in refuse("predict", own_run, "--edges", edges, "--nodes", nodes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[origin.data]", "[origin.dta]"),
        ("seeds = [", 'seeds = ["x", '),
        ("[origin.split]", "[origin.split]\nname = {a = 1}"),
    ],
)
def test_an_edited_run_is_refused(
    own_run: Path, tmp_path: Path, refuse: Callable[..., str], old: str, new: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(own_run, copy)
    text = (copy / "config.toml").read_text()
    assert old in text
    (copy / "config.toml").write_text(text.replace(old, new))
    assert "config.toml" in refuse("predict", copy)


def test_labels_that_came_later_are_no_other_graph(
    own_run: Path, tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    edges, nodes = write_own_files(tmp_path, unlabelled=0)
    with open(nodes, newline="") as file:
        rows = list(csv.reader(file))
    rows[-1][1] = "a class of its own"  # comes before the others, so that every class has another number
    with open(nodes, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    now = ("--edges", edges, "--nodes", nodes)
    before, after = (ask("predict", own_run, *files, "--rows", NODES)["rows"] for files in ((), now))
    assert [{**row, "label": ""} for row in before] == [{**row, "label": ""} for row in after]
    assert [row["label"] for row in after] == [row[1] for row in rows[1:]]
    assert ask("predict", own_run, *now, "--unlabelled")["nodes"] == 0
    assert main(["predict", str(own_run), *map(str, now)]) == 0
    assert "labels of 6 nodes changed since training" in capsys.readouterr().err


def test_labels_that_are_damaged_are_one_line(
    own_run: Path, tmp_path: Path, refuse: Callable[..., str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(own_run, copy)
    edges, nodes = write_own_files(tmp_path, unlabelled=0)
    for labels in (np.full(NODES, 99, dtype=np.int32), np.zeros(3, dtype=np.int32), np.zeros(NODES)):
        np.save(copy / "labels.npy", labels)
        assert "labels.npy" in refuse("predict", copy, "--edges", edges, "--nodes", nodes)


def test_names_go_with_ids_also_where_the_table_repeats_a_row(tmp_path: Path, ask: Ask) -> None:
    _, nodes = write_own_files(tmp_path)
    head, *rows = nodes.read_text().splitlines()
    again = [head + ",called", *(f"{row},name of {k}" for k, row in enumerate(rows))]
    again.insert(2, again[1])
    nodes.write_text("\n".join(again) + "\n")
    out = tmp_path / "run"
    options = ("--seeds", 1, "--epochs", 4, "--no-plots", "--quiet", "--out", out, "--ignore", "called")
    assert main(train_arguments(tmp_path, *options)) == 0
    assert ask("explain", out, "name of 7", "--name-column", "called")["node"] == "n7"
