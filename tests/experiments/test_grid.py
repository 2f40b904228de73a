"""The grid and its settings are the paper's: models, data sets, seeds, and numbers as printed."""

import os
import re
from pathlib import Path

import pytest

from conjoint.errors import InputError
from conjoint.experiments.grid import (
    PAPER,
    experiment,
    experiment_names,
    paper_settings,
    published,
    read_toml,
)
from conjoint.nn import zoo
from conjoint.nn.names import MODELS
from conjoint.nn.zoo import settings_of
from conjoint.training import config_from
from research.damage import VARIANTS
from research.learners import LEARNERS

# The paper's source, where it stands beside the benchmarks' folder.
SOURCE = Path(os.environ.get("CONJOINT_DATA", "")).parent / "paper"
DATASETS = ("cora", "citeseer", "pubmed", "coauthor-cs", "ogbn-arxiv")


def test_table_1_has_eighteen_models_four_graphs_and_ten_seeds() -> None:
    specs = experiment("table1").specs
    assert len({spec.model for spec in specs}) == 18
    assert len({spec.dataset for spec in specs}) == 4
    assert len(specs) == 18 * 4 * 10
    assert {spec.split for spec in specs if spec.dataset == "coauthor-cs"} == {"per-class"}
    assert {spec.split for spec in specs if spec.dataset != "coauthor-cs"} == {"public"}


def test_tables_share_their_runs() -> None:
    one, two = experiment("table1"), experiment("table2")
    assert [spec.key for spec in one.specs] == [spec.key for spec in two.specs]
    assert {spec.key for spec in experiment("table6").specs} < {spec.key for spec in one.specs}
    random = {spec.key for spec in experiment("random-splits").specs}
    conjoint = [spec for spec in experiment("ablation").specs if spec.model == "cat-i-mf"]
    assert conjoint and {spec.key for spec in conjoint} <= random | {spec.key for spec in one.specs}


def test_a_random_split_is_drawn_for_each_seed_and_the_same_for_every_model() -> None:
    specs = [spec for spec in experiment("random-splits").specs if spec.dataset != "coauthor-cs"]
    assert {(spec.split_seed, spec.seed) for spec in specs} == {(seed, seed) for seed in range(10)}


def test_the_second_opinion_on_coauthor_cs_is_not_the_first_once_more() -> None:
    one, two = (
        [spec for spec in experiment(name).specs if spec.dataset == "coauthor-cs"]
        for name in ("table1", "random-splits")
    )
    assert len(one) == len(two) == 180
    assert not {spec.key for spec in one} & {spec.key for spec in two}
    assert {spec.split_seed for spec in two} == set(range(10, 20))


def test_a_published_split_has_no_seed() -> None:
    assert {spec.split_seed for spec in experiment("released").specs} == {0}


def test_the_nine_lambdas_of_the_figure() -> None:
    swept = {spec.train_settings["penalty_weight"] for spec in experiment("lambda").specs}
    assert swept == {1e-4, 1e-2, 1e-1, 1, 5, 10, 20, 50, 100}
    assert len(experiment("lambda").specs) == 9 * 4 * 4 * 10  # values, CATs, graphs, seeds
    assert experiment("lambda-all").specs == experiment("lambda").specs


def test_the_ablation_has_structure_alone_without_the_self_term_and_both_tasks() -> None:
    chosen = experiment("ablation")
    for name in ("gat-s-mf", "gat-s-sc"):
        assert sum(spec.model == name for spec in chosen.specs) == 40
        model = zoo.build(name, features=4, classes=3, num_nodes=5)
        assert not any("eps" in part or "att" in part for part in model.state_dict())
        assert any("factors" in part for part in model.state_dict())
    assert experiment("ablation-all").specs == chosen.specs
    assert experiment("ablation-all").metric == "all_accuracy"


def test_gat_and_cat_are_trained_at_each_others_rate() -> None:
    specs = experiment("rates").specs
    for model in ("gat", "cat-e-sc"):
        for rate in (0.005, 0.01):
            mine = [spec for spec in specs if (spec.model, spec.train_settings["lr"]) == (model, rate)]
            assert len(mine) == 30 and {spec.split for spec in mine} == {"public"}
    paper = {spec.key for spec in experiment("table1").specs}
    assert sum(spec.key in paper for spec in specs) == len(specs) // 2


def test_the_other_width_on_coauthor_cs() -> None:
    widths = {(spec.model, spec.model_settings["hidden"]) for spec in experiment("coauthor-narrow").specs}
    assert widths == {("gat", 32), *((name, 8) for name in experiment("coauthor-narrow").models[1:])}
    assert len(widths) == 7


@pytest.mark.parametrize("name", experiment_names())
def test_every_run_can_be_built_and_quick_is_a_smaller_grid(name: str) -> None:
    whole, quick = experiment(name), experiment(name, quick=True)
    for spec in whole.specs:
        assert spec.model in {*MODELS, *LEARNERS}
        if spec.model in MODELS:
            assert set(spec.model_settings) <= set(settings_of(spec.model))
        assert set(spec.variant) <= set(VARIANTS)
        config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule})
    assert 0 < len(quick.specs) < len(whole.specs)


def test_a_cells_own_settings_win_over_the_papers() -> None:
    spec = next(spec for spec in experiment("released").specs if spec.model == "cat-i-mf")
    assert paper_settings("cat-i-mf", "cora").train["lr"] == 0.01
    assert spec.train_settings["lr"] == 0.005
    assert spec.model_settings["self_dropout"] == 0.9


def test_an_unknown_experiment_is_named() -> None:
    with pytest.raises(InputError, match=r"'table9' is not known; choose one of table1"):
        experiment("table9")


def test_published_numbers() -> None:
    assert published("table1", "cat-e-mf", "cora") == (85.56, 0.19)
    assert published("table2", "gat", "ogbn-arxiv") == (76.04, 0.38)
    assert published("table5", "cat-i-sc", "ogbn-arxiv") == (7158006, 21.4)
    assert published("table1", "gat-self", "cora") is None


def test_every_published_accuracy_stands_in_the_papers_source() -> None:
    """The lines of numbers in its tables, without spaces and bold face, are kept beside this file."""
    printed = Path(__file__).with_name("printed.txt").read_text()
    for source in SOURCE.glob("000_*.txt"):
        whole = re.sub(r"\s+|\\bf", "", source.read_text())
        assert all(line in whole for line in printed.split())
    for table in ("table1", "table2"):
        numbers = read_toml(PAPER)["published"][table]
        for model, cells in numbers.items():
            if model not in ("columns", "says"):
                line = "&".join(rf"{mean:.2f}$\pm${deviation:.2f}" for mean, deviation in cells)
                assert line in printed, (table, model)


# What came for ensembles: nothing of the paper's.
OF_ENSEMBLES = ("logistic", "boosting", "label-propagation", "resgat", "resmlp", "rescat-i", "rescat-e")


@pytest.mark.parametrize("name", [name for name in MODELS if zoo.parse(name).body not in OF_ENSEMBLES])
def test_every_model_has_settings_that_build_it(name: str) -> None:
    for dataset in DATASETS:
        settings = paper_settings(name, dataset)
        assert config_from(settings.train).lr == settings.train["lr"]
        zoo.build(name, features=4, classes=3, num_nodes=5, **settings.model)


@pytest.mark.parametrize(
    ("name", "dataset", "dropout", "lr", "hidden"),
    [
        ("monet", "coauthor-cs", 0.75, 0.005, 32),
        ("gcn", "pubmed", 0.5, 0.01, 32),
        ("gcn", "ogbn-arxiv", 0.5, 0.005, 256),
        ("sage", "cora", 0.5, 0.01, 16),
        ("jknet", "citeseer", 0.5, 0.005, 32),
        ("gat", "coauthor-cs", 0.6, 0.005, 32),
        ("gat-netmf", "ogbn-arxiv", 0.75, 0.002, 256),
        ("appnp", "coauthor-cs", 0.6, 0.01, 64),
        ("arma", "citeseer", 0.25, 0.01, 64),
        ("gin", "ogbn-arxiv", 0.75, 0.01, 256),
        ("cat-e-sc", "cora", 0.6, 0.01, 8),
        ("cat-i-fs", "ogbn-arxiv", 0.75, 0.002, 256),
    ],
)
def test_cells_of_the_papers_table(name: str, dataset: str, dropout: float, lr: float, hidden: int) -> None:
    settings = paper_settings(name, dataset)
    found = (settings.model["dropout"], settings.train["lr"], settings.model["hidden"])
    assert found == (dropout, lr, hidden)


def test_heads_and_the_arxiv_variant() -> None:
    cora, arxiv = (paper_settings("cat-i-mf", name).model for name in ("cora", "ogbn-arxiv"))
    assert (cora["heads"], cora["out_heads"]) == (8, 1)
    assert (arxiv["heads"], arxiv["out_heads"], arxiv["residual"], arxiv["per_head"]) == (3, 3, True, False)


def test_released_data_share_the_settings_and_unknown_data_get_the_common_ones() -> None:
    assert paper_settings("arma", "citeseer-release") == paper_settings("arma", "citeseer")
    assert paper_settings("gcn", "my-graph").model["hidden"] == 32


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(InputError, match="'gcnn' has no settings"):
        paper_settings("gcnn", "cora")
