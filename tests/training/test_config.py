"""Settings: the paper's defaults, each one checked, there and back through TOML."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.errors import InputError
from conjoint.training import TrainConfig, config_from, config_to
from conjoint.training.config import read_toml, write_toml


def test_defaults_are_the_papers() -> None:
    config = TrainConfig()
    assert (config.lr, config.weight_decay, config.epochs, config.patience) == (0.01, 5e-4, 1500, 100)
    assert (config.penalty_weight, config.rule, config.saw_test) == (0.01, "val-loss", False)


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("epochs", -3, "1 or more"),
        ("epochs", 0, "1 or more"),
        ("epochs", 1.5, "whole number"),
        ("epochs", True, "whole number"),
        ("epochs", "many", "whole number"),
        ("lr", 0, "above 0"),
        ("lr", float("nan"), "above 0"),
        ("lr", float("inf"), "above 0"),
        ("weight_decay", -1e-4, "0 or more"),
        ("structural_weight_decay", -1, "0 or more"),
        ("penalty_weight", -0.01, "0 or more"),
        ("patience", -1, "0 to train all epochs"),
        ("rule", "best", "choose one of val-loss, val-accuracy, gat, release"),
        ("see_test", 1, "true or false"),
        ("clip", 0, "leave it out for none"),
        ("schedule", "steps", "choose one of constant, cosine, linear"),
        ("warmup", -1, "0 for no warm-up"),
        ("seed", -1, "0 or more"),
        ("seed", 2**63, "whole number"),
        ("evaluate_every", 0, "1 or more"),
        ("field", "half", "choose one of auto, whole, receptive"),
        ("row_normalise", True, "choose one of auto, always, never"),
    ],
)
def test_a_bad_setting_names_itself_its_value_and_the_remedy(field: str, value: Any, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        config_from({field: value})
    assert str(caught.value).startswith(f"{field}={value!r}: ") and remedy in str(caught.value)


def test_every_setting_is_checked() -> None:
    for field in dataclasses.fields(TrainConfig):
        with pytest.raises(InputError, match=field.name):
            config_from({field.name: object()})


def test_an_unknown_setting_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"mine: 'learning_rate' is not a training setting; there are epochs, lr"
    ):
        config_from({"learning_rate": 0.1}, "mine")


def test_the_rule_that_sees_test_nodes_must_be_asked_for_twice() -> None:
    with pytest.raises(InputError, match="picks the epoch by test accuracy"):
        TrainConfig(rule="release")
    assert TrainConfig(rule="release", see_test=True).saw_test
    assert not TrainConfig(see_test=True).saw_test


@given(
    st.builds(
        TrainConfig,
        epochs=st.integers(1, 10**9),
        lr=st.floats(1e-12, 1e6),
        structural_weight_decay=st.none() | st.floats(0, 10),
        clip=st.none() | st.floats(1e-9, 1e9),
        rule=st.sampled_from(["val-loss", "val-accuracy", "gat"]),
        seed=st.integers(0, 2**63 - 1),
    )
)
def test_settings_survive_toml_exactly(config: TrainConfig) -> None:
    assert config_from(read_toml(write_toml(config_to(config)), "here")) == config
