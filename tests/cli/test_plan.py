"""Options, TOML and defaults: who wins, and what is refused before anything is loaded."""

from collections.abc import Callable
from pathlib import Path

import pytest

from conjoint import defaults as recommended
from conjoint.cli import make_parser
from conjoint.cli.plan import Plan, assignment, plan_from, read_config
from conjoint.errors import InputError
from conjoint.selection.setting import check_settings


def plan(*arguments: str) -> Plan:
    return plan_from(make_parser().parse_args(["train", *arguments]))


def test_nothing_said_means_the_embedded_cora() -> None:
    made = plan()
    assert made.data == {"name": "cora", "source": "embedded"}
    assert (made.setting.model, made.setting.settings) == ("ensemble", {})
    assert made.seeds == (0,) and plan("--model", "gat").seeds == tuple(range(recommended.SEEDS))
    assert made.setting.train == made.setting.search == made.split == {}


def test_a_file_in_place_of_a_name_is_the_edge_table(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("source,target\na,b\n")
    made = plan(str(edges), "--nodes", str(nodes), "--label", "topic")
    assert made.data == plan("--edges", str(edges), "--nodes", str(nodes), "--label", "topic").data


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "cat-i-mf"],
        ["--heads", "4"],
        ["--lambda", "0.1"],
        ["--intervention", "auto"],
        ["--batch", "neighbours"],
        ["--fanout", "10,5"],
    ],
)
def test_what_only_attention_has_asks_for_attention(arguments: list[str]) -> None:
    made = plan(*arguments)
    assert made.setting.model == "cat-i-mf"
    assert "consistency" not in made.setting.train and "rule" not in made.setting.train


def test_options_are_asked_of_every_member() -> None:
    made = plan("--epochs", "7", "--hidden", "16", "--trials", "3", "--metric", "macro-f1", "--single")
    assert made.setting.is_ensemble and made.setting.train == {"epochs": 7}
    assert made.setting.settings == {"hidden": 16}
    assert made.setting.search == {"trials": 3, "metric": "macro-f1", "single": True}


def test_several_ranks_train_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert plan().setting.model == recommended.FALLBACK


def test_a_search_starts_from_the_plain_setting() -> None:
    assert plan_from(make_parser().parse_args(["tune", "cora"])).setting.train == {}


def test_options_beat_the_file_and_set_beats_both(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        '[train]\nlr = 0.5\nepochs = 7\n[model]\nname = "gat"\nheads = 4\n[split]\nname = "public"\n'
    )
    made = plan("--config", str(file), "--lr", "0.1", "--heads", "3", "--set", "heads=2", "--set", "clip=1")
    assert made.setting.train == {"lr": 0.1, "epochs": 7, "clip": 1}
    assert (made.setting.model, made.setting.settings) == ("gat", {"heads": 2})
    assert made.split == {"name": "public"}


def test_the_folder_of_the_environment_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONJOINT_DATA", "graphs")
    assert plan("cora").data == {"name": "cora", "root": str(Path("graphs").absolute())}
    assert plan("cora", "--data", "/other").data["root"] == "/other"
    assert "root" not in plan().data and "root" not in plan("--edges", "e.csv").data


def test_a_runs_own_config_is_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)
    file = tmp_path / "config.toml"
    file.write_text('[train]\nseed = 4\n[origin]\nseeds = [4, 5]\n[origin.data]\nname = "pubmed"\n')
    made = plan("--config", str(file))
    assert made.data == {"name": "pubmed"} and made.seeds == (4, 5)
    assert plan("--config", str(file), "--seed", "9").seeds == (9,)


def test_consistency_takes_settings_or_its_defaults() -> None:
    assert plan("--model", "gat", "--consistency").setting.train == {"consistency": {}}
    assert plan("--model", "gat", "--consistency", "passes=2,weight=3.0").setting.train["consistency"] == {
        "passes": 2,
        "weight": 3.0,
    }
    with pytest.raises(InputError, match="--consistency often: write key=value"):
        plan("--consistency", "often")


def test_seeds_count_from_the_first() -> None:
    assert plan("--seed", "5").seeds == (5,)
    assert plan("--seed", "5", "--seeds", "3").seeds == (5, 6, 7)


def test_paths_become_absolute() -> None:
    made = plan("--edges", "e.csv", "--nodes", "n.csv")
    files = {"edges": str(Path("e.csv").absolute()), "nodes": str(Path("n.csv").absolute())}
    assert made.data == {**files, "reading": 2}


def test_variant_then_options() -> None:
    made = plan("--variant", "ogbn-arxiv", "--hidden", "64")
    network = made.setting.settings
    assert network["hidden"] == 64 and network["residual"] is True and network["heads"] == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=1", 1), ("a=1e-3", 1e-3), ("a=true", True), ("a=word", "word"), ("a='x y'", "x y"), ("a=", "")],
)
def test_values_read_as_toml_or_as_a_word(text: str, value: object) -> None:
    assert assignment(text) == ("a", value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cora", "--edges", "e.csv"], "not both"),
        (["--nodes", "n.csv"], "--edges"),
        (["--edges", "e.csv", "--edition", "release"], "--edition"),
        (["--set", "clip"], "key=value"),
        (["--set", "depth=3"], "neither ensemble nor training"),
        (["--consistency"], "--consistency: the members have their own; name a --model"),
        (["--metric", "luck"], "metric 'luck' is not known; choose one of accuracy"),
        (["--minutes", "0"], "minutes=0.0: give a number above 0"),
        (["--trials", "0"], "trials"),
        (["--model", "gat", "--trials", "3"], "--trials: goes with the default, an ensemble"),
        (["--seeds", "0"], "1 seed or more"),
        (["--config", "nowhere.toml"], "no such file"),
    ],
)
def test_bad_combinations_are_named(arguments: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan(*arguments)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[train", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"[trian]\nlr=1\n", "unknown section 'trian'"),
        (b"train = 3\n", r"must be a section: \[train\]"),
        (b"[" * 5000, "not valid TOML"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_config(str(file))


@pytest.mark.parametrize(
    "settings",
    [{"hidden": "many"}, {"hidden": 2.5}, {"hidden": True}, {"residual": 1}, {"rank": "x"}, {"depth": 2}],
)
def test_settings_of_the_wrong_kind(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        check_settings("cat-i-mf", settings)


def test_bad_training_options_end_in_one_line(refuse: Callable[..., str], tmp_path: Path) -> None:
    cases = {
        ("--model", "cat-o"): "model 'cat-o' is not known; choose one of",
        ("--epochs", "-1"): "epochs=-1",
        ("--lambda", "-0.5"): "penalty_weight=-0.5",
        ("--lr", "nan"): "lr=nan",
        ("--dropout", "1.5"): "dropout",
        ("--hidden", "20"): "multiple of heads=8",
        ("--metric", "luck"): "metric 'luck' is not known",
        ("--rule", "best"): "rule='best'",
        ("--rule", "release"): "see_test=true",
        ("--split", "random"): "split='random' is not known",
        ("--split", "public"): "comes without a 'public' split",
        ("--train-per-class", "5000"): "fewer than train_per_class=5000",
        ("--heads", "0"): "heads",
        ("--device", "tpu:7"): "--device tpu:7",
        ("--features", "spectral:x"): "spectral:x",
        ("--set", "hidden=many"): "hidden='many'",
    }
    for options, words in cases.items():
        assert words in refuse("train", *options, "--out", tmp_path / "out"), options
    assert list(tmp_path.iterdir()) == []
