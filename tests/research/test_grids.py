"""The grids beyond the paper: what they vary, and that the recommended setting is among what was measured."""

from conjoint import defaults as recommended
from conjoint.experiments.grid import experiment
from conjoint.nn.zoo import settings_of
from conjoint.training import config_from
from research.recommended import OTHERWISE


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


def test_a_level_inside_a_table_leaves_the_rest_of_the_table() -> None:
    specs = experiment("recipe-weight").specs
    seen = {tuple(sorted(spec.train_settings["consistency"].items())) for spec in specs}
    weights = (0, 1, 1.5, 2)
    assert seen == {
        (("passes", 2), ("ramp", 50), ("temperature", 0.5), ("weight", weight)) for weight in weights
    }


def test_what_is_recommended_is_what_was_measured() -> None:
    passes = recommended.TRAIN["consistency"]["passes"]
    specs = [spec for spec in experiment("recipe").specs if spec.model in OTHERWISE]
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
