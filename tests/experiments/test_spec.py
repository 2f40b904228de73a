"""A run's key: equal for equal runs, different for everything that could change a number."""

import json
from dataclasses import asdict, replace

import pytest

from conjoint.experiments.spec import RunSpec, spec_from

SPEC = RunSpec(
    model="cat-i-mf",
    dataset="cora",
    split="per-class",
    seed=3,
    split_seed=3,
    source="embedded",
    model_settings={"hidden": 8, "dropout": 0.6},
    train_settings={"lr": 0.01, "penalty_weight": 1.0},
    variant={"noise": {"kind": "random-edges", "share": 0.5, "seed": 1}},
)


def test_the_key_does_not_depend_on_order_or_on_how_a_number_is_written() -> None:
    shuffled = replace(
        SPEC,
        model_settings={"dropout": 0.6, "hidden": 8},
        train_settings={"penalty_weight": 1, "lr": 0.01},
    )
    assert shuffled.key == SPEC.key


def test_the_key_is_fixed() -> None:
    """Rows of years ago must still be found: a change of the recipe is a mistake."""
    assert RunSpec(model="gat", dataset="cora", split="public", seed=0).key == "f69586b7eab11abc"


@pytest.mark.parametrize(
    "change",
    [
        {"split_settings": {"train_per_class": 5}},
        {"model": "cat-i-sc"},
        {"dataset": "citeseer"},
        {"source": "release"},
        {"features": "spectral:128"},
        {"split": "public"},
        {"split_seed": 4},
        {"seed": 4},
        {"rule": "gat"},
        {"model_settings": {"hidden": 16, "dropout": 0.6}},
        {"train_settings": {"lr": 0.02, "penalty_weight": 1.0}},
        {"variant": {}},
        {"variant": {"noise": {"kind": "random-edges", "share": 0.5, "seed": 2}}},
    ],
)
def test_whatever_changes_a_number_changes_the_key(change: dict[str, object]) -> None:
    assert replace(SPEC, **change).key != SPEC.key  # type: ignore[arg-type]


def test_a_row_gives_its_spec_back() -> None:
    row = json.loads(json.dumps({"key": SPEC.key, **asdict(SPEC), "test_accuracy": 0.8}))
    assert spec_from(row) == SPEC
    assert spec_from(row).key == SPEC.key
