"""From a spec to a row, on the Cora that ships with the package."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.experiments import variants
from conjoint.experiments.execute import AUTO, RECOMMENDED, execute
from conjoint.experiments.grid import experiment
from conjoint.experiments.spec import RunSpec, spec_from

SHORT = {"epochs": 3, "patience": 0}


def cora(model: str) -> RunSpec:
    [spec] = [
        spec
        for spec in experiment("random-splits").specs
        if (spec.model, spec.dataset, spec.seed) == (model, "cora", 1)
    ]
    return replace(spec, train_settings={**spec.train_settings, **SHORT})


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONJOINT_DATA", raising=False)


def test_a_row_says_what_was_run_and_what_came_out() -> None:
    spec = cora("cat-i-mf")
    row = execute(spec)
    assert row["key"] == spec.key and spec_from(row) == spec
    assert row["epochs"] == 3 and row["stopped"] == "epochs" and row["saw_test"] is False
    assert 0 < row["test_accuracy"] < 1 and 0 < row["all_accuracy"] < 1 and 0 < row["val_accuracy"] < 1
    assert row["release"]["saw_test"] is True
    assert row["release"]["test_accuracy"] >= 0
    assert row["parameters"] == 111285  # the paper's Table 5
    assert row["peak_mib"] >= row["grown_mib"] >= 0
    assert row["made_with"]["torch"].startswith("2.")


def test_the_authors_rule_is_watched_only_in_runs_of_the_papers_kind() -> None:
    spec = cora("gat")
    consistent = {**spec.train_settings, "consistency": {"passes": 2, "weight": 1.0}}
    assert "release" in execute(spec)
    assert "release" not in execute(replace(spec, variant={"add-edges": {"share": 0.5}}))
    assert "release" not in execute(replace(spec, train_settings=consistent))


def test_the_same_spec_gives_the_same_numbers() -> None:
    one, other = execute(cora("gat")), execute(cora("gat"))
    for name in ("val_loss", "test_accuracy", "all_accuracy", "best_epoch", "release"):
        assert one[name] == other[name]


def test_joined_features_reach_the_model() -> None:
    plain, joined = execute(cora("gat")), execute(cora("gat-klap"))
    assert joined["parameters"] == plain["parameters"] + 64 * 64  # 64 eigenvectors into 64 hidden units


def test_auto_says_what_it_chose_and_is_that_model() -> None:
    spec = cora("cat-i-mf")
    row = execute(replace(spec, model=AUTO, model_settings={**spec.model_settings, "hidden": 2}))
    assert row["chosen"].startswith(("cat-i-", "cat-e-")) and row["model"] == AUTO
    chosen = execute(replace(spec, model=row["chosen"], model_settings={**spec.model_settings, "hidden": 2}))
    for name in ("val_loss", "test_accuracy", "parameters"):
        assert row[name] == chosen[name]


@pytest.mark.parametrize(
    ("variant", "may_be"),
    [
        ({}, {"spread-trust", "gated-trust"}),
        ({"move-features": {"share": 0.75}}, {"spread-trust", "spread-zero"}),
    ],
)
def test_the_recommended_setting_says_what_it_trained(variant: dict[str, Any], may_be: set[str]) -> None:
    spec = replace(cora("cat-i-mf"), model="spread-trust", model_settings={}, variant=variant)
    row = execute(replace(spec, model=RECOMMENDED))
    assert row["chosen"] in may_be
    rivals = {name: execute(replace(spec, model=name)) for name in may_be}
    assert row["val_accuracy"] == max(rival["val_accuracy"] for rival in rivals.values())
    assert row["val_loss"] == rivals[row["chosen"]]["val_loss"]


def test_a_run_that_diverges_gives_a_row_that_says_so() -> None:
    spec = cora("gat")
    row = execute(replace(spec, train_settings={**spec.train_settings, "lr": 1e30}))
    assert "failed" in row and "lr" in row["failed"]
    assert "test_accuracy" not in row


def test_variants_change_the_graph_and_leave_the_kept_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_edges(data: Data, options: Mapping[str, Any], rng: np.random.Generator) -> Data:
        changed = data.clone()
        changed.edge_index = data.edge_index[:, : options["keep"]]
        return changed

    monkeypatch.setitem(variants.VARIANTS, "few-edges", without_edges)
    before = execute(cora("gat"))
    few = execute(replace(cora("gat"), variant={"few-edges": {"keep": 2}}))
    assert few["val_loss"] != before["val_loss"] and few["key"] != before["key"]
    assert execute(cora("gat"))["val_loss"] == before["val_loss"]


def test_noise_goes_with_the_seed_and_reaches_what_is_made_from_the_graph() -> None:
    noisy = replace(cora("gat-klap"), variant={"add-edges": {"share": 0.5}})
    one, again = execute(noisy), execute(noisy)
    other = execute(replace(noisy, seed=2))
    clean = execute(cora("gat-klap"))
    assert one["val_loss"] == again["val_loss"]
    assert len({row["val_loss"] for row in (one, other, clean)}) == 3


def test_a_split_can_have_settings() -> None:
    few = execute(replace(cora("gcn"), split_settings={"train_per_class": 2}))
    assert few["split_settings"] == {"train_per_class": 2} and spec_from(few).split_settings
    assert few["key"] != cora("gcn").key
    assert few["val_loss"] != execute(cora("gcn"))["val_loss"]


def test_a_control_gives_a_row_like_a_network() -> None:
    spec = replace(cora("gcn"), model="smooth-logistic", model_settings={}, train_settings={})
    row, network = execute(spec), execute(cora("gcn"))
    assert set(network) - set(row) == {"release"} and "failed" not in row
    assert row["test_accuracy"] > 0.75 and row["parameters"] == 7 * 1434
    told = ("val_loss", "val_accuracy", "test_accuracy", "all_accuracy")
    again = execute(replace(spec, seed=spec.seed + 1))  # the same split: nothing else decides the row
    assert {name: row[name] for name in told} == {name: again[name] for name in told}
    noisy = execute(replace(spec, variant={"add-edges": {"share": 1.0}}))
    assert noisy["test_accuracy"] < row["test_accuracy"]


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(InputError, match="variant 'fog' is not known"):
        execute(replace(cora("gat"), variant={"fog": {}}))
