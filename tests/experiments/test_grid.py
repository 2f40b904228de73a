"""The grid is the paper's: models, data sets, seeds, and numbers as printed."""

import os
import re
from pathlib import Path

import pytest

from conjoint import recommended
from conjoint.errors import InputError
from conjoint.experiments.controls import CONTROLS
from conjoint.experiments.execute import AUTO, RECOMMENDED
from conjoint.experiments.grid import experiment, experiment_names, paper, published
from conjoint.experiments.settings import paper_settings
from conjoint.experiments.variants import VARIANTS
from conjoint.nn.zoo import MODELS, settings_of
from conjoint.training import config_from

# The paper's source, where it stands beside the benchmarks' folder.
PAPER = Path(os.environ.get("CONJOINT_DATA", "")).parent / "paper"


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
    assert {spec.key for spec in one.specs if spec.dataset == "coauthor-cs"} < random
    conjoint = [spec for spec in experiment("ablation").specs if spec.model.startswith("cat-i-mf")]
    assert conjoint and {spec.key for spec in conjoint} <= random


def test_a_random_split_is_drawn_for_each_seed_and_the_same_for_every_model() -> None:
    specs = experiment("random-splits").specs
    assert {(spec.split_seed, spec.seed) for spec in specs} == {(seed, seed) for seed in range(10)}


def test_a_published_split_has_no_seed() -> None:
    assert {spec.split_seed for spec in experiment("released").specs} == {0}


def test_the_nine_lambdas_of_the_figure() -> None:
    swept = {spec.train_settings["penalty_weight"] for spec in experiment("lambda").specs}
    assert swept == {1e-4, 1e-2, 1e-1, 1, 5, 10, 20, 50, 100}


@pytest.mark.parametrize("name", experiment_names())
def test_every_run_can_be_built_and_quick_is_a_smaller_grid(name: str) -> None:
    whole, quick = experiment(name), experiment(name, quick=True)
    for spec in whole.specs:
        assert spec.model in {*MODELS, *CONTROLS, AUTO, RECOMMENDED}
        if spec.model in MODELS:
            assert set(spec.model_settings) <= set(settings_of(spec.model))
        assert set(spec.variant) <= set(VARIANTS)
        config_from({**spec.train_settings, "seed": spec.seed, "rule": spec.rule})
    assert 0 < len(quick.specs) < len(whole.specs)


def test_noise_levels_are_variants_and_the_clean_level_is_the_papers_own_run() -> None:
    edges = experiment("robust-edges")
    cora = [spec for spec in edges.specs if spec.dataset == "cora" and spec.model == "gat"]
    shares = [spec.variant["add-edges"]["share"] if spec.variant else 0.0 for spec in cora]
    assert sorted(set(shares)) == [0.0, 0.25, 0.5, 1.0, 2.0] and len(cora) == 5 * 10
    others = [spec for spec in edges.specs if spec.dataset != "cora" and spec.model == "gat"]
    assert len(others) == 3 * 3 * 5
    clean = {
        spec.key for spec in edges.specs if not spec.variant and spec.model in ("gat", "gcn", "cat-i-mf")
    }
    assert clean < {spec.key for spec in experiment("table1").specs}


def test_few_labels_are_settings_of_the_split() -> None:
    found = {spec.split_settings.get("train_per_class", 20) for spec in experiment("few-labels").specs}
    assert found == {1, 3, 5, 10, 20}


def test_a_control_has_no_training() -> None:
    controls = [spec for spec in experiment("robust-edges").specs if spec.model == "smooth-logistic"]
    assert controls and not any(spec.train_settings for spec in controls)


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
    sources = sorted(PAPER.glob("000_*.txt"))
    if not sources:
        pytest.skip(f"the paper's source is not in {PAPER}")
    printed = re.sub(r"\s+|\\bf", "", sources[0].read_text())
    for table in ("table1", "table2"):
        numbers = paper()["published"][table]
        for model, cells in numbers.items():
            if model not in ("columns", "says"):
                line = "&".join(rf"{mean:.2f}$\pm${deviation:.2f}" for mean, deviation in cells)
                assert line in printed, (table, model)


def test_a_level_inside_a_table_leaves_the_rest_of_the_table() -> None:
    specs = experiment("recipe-weight").specs
    seen = {tuple(sorted(spec.train_settings["consistency"].items())) for spec in specs}
    weights = (0, 1, 1.5, 2)
    assert seen == {
        (("passes", 2), ("ramp", 50), ("temperature", 0.5), ("weight", weight)) for weight in weights
    }


def test_what_is_recommended_is_what_was_measured() -> None:
    passes = recommended.TRAIN["consistency"]["passes"]
    specs = [spec for spec in experiment("recipe").specs if spec.model in recommended.OTHERWISE]
    with_it = [spec for spec in specs if spec.train_settings["consistency"]["passes"] == passes]
    assert len({(spec.dataset, spec.model) for spec in with_it}) == 6
    for spec in with_it:
        assert spec.rule == recommended.TRAIN["rule"] and spec.split == "public"
        usual = config_from({**spec.train_settings, "rule": spec.rule}, "row")
        assert usual == config_from(recommended.TRAIN, "recommended")
        assert spec.model_settings.items() <= settings_of(spec.model).items()


def test_the_recommended_setting_is_a_model_of_the_robustness_study() -> None:
    specs = [spec for spec in experiment("robust-features").specs if spec.model == "recommended"]
    assert len(specs) == 40 and {spec.rule for spec in specs} == {recommended.TRAIN["rule"]}
    for spec in specs:
        made = config_from({**spec.train_settings, "rule": spec.rule}, "row")
        assert made == config_from(recommended.TRAIN, "recommended")
