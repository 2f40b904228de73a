"""Settings: the paper's defaults, each one checked, there and back through TOML."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjoint.errors import InputError
from conjoint.training import BatchConfig, Consistency, TrainConfig, config_from, config_to
from conjoint.training.config import batch_config_from, read_toml, write_toml

MOST = 2**63 - 1
# What a run that does not say otherwise was trained with; nobody writes them down, so they may not move.
TRAIN = {
    "epochs": 1500, "lr": 0.01, "weight_decay": 5e-4, "structural_weight_decay": None, "penalty_weight": 0.01,
    "patience": 100, "rule": "val-loss", "see_test": False, "clip": None, "schedule": "constant", "warmup": 0,
    "seed": 0, "evaluate_every": 1, "field": "auto", "row_normalise": "auto", "class_weight": None,
    "consistency": None,
}  # fmt: skip
CONSISTENCY = {
    "passes": 4, "weight": 1.0, "temperature": 0.5, "distance": "squared", "ramp": 0, "threshold": 0.0,
    "sample": 0, "drop_node": 0.0, "drop_edge": 0.0,
}  # fmt: skip
BATCH = {
    "kind": "clusters", "size": 0, "joined": 10, "fanout": (10,), "per_step": 1, "penalty_neighbours": 16,
    "penalty_nodes": 65536,
}  # fmt: skip
JUST_BELOW_1 = 1 - 2**-53
# Every number's last allowed values, and the first ones beyond them.
EDGES: list[tuple[Any, str, list[Any], list[Any]]] = [
    (TrainConfig, "epochs", [1, MOST], [0, MOST + 1, 1.0]),
    (TrainConfig, "lr", [5e-324, 2], [0, 0.0, -1e-9, True]),
    (TrainConfig, "weight_decay", [0, 5e-324, 2.5], [-5e-324, False]),
    (TrainConfig, "structural_weight_decay", [0, 2.5], [-5e-324]),
    (TrainConfig, "penalty_weight", [0, 2.5], [-5e-324]),
    (TrainConfig, "patience", [0, MOST], [-1, MOST + 1]),
    (TrainConfig, "clip", [5e-324, 2], [0, 0.0]),
    (TrainConfig, "warmup", [0], [-1, 0.5]),
    (TrainConfig, "seed", [0, MOST], [-1, MOST + 1]),
    (TrainConfig, "evaluate_every", [1], [0]),
    (TrainConfig, "class_weight", ["balanced", {"a": 5e-324, "b": 3}], ["even", {}, {"a": 0}, {1: 1.0}]),
    (TrainConfig, "class_weight", [{"a": 1e308}], [{"a": True}, {"a": float("inf")}, {"a": 1, "b": "2"}]),
    (Consistency, "passes", [1], [0, True]),
    (Consistency, "weight", [0, 1.5], [-5e-324]),
    (Consistency, "temperature", [5e-324, 1], [0, 1 + 2**-52]),
    (Consistency, "ramp", [0], [-1]),
    (Consistency, "threshold", [0, JUST_BELOW_1], [-5e-324, 1]),
    (Consistency, "sample", [0], [-1]),
    (Consistency, "drop_node", [0, JUST_BELOW_1], [-5e-324, 1]),
    (Consistency, "drop_edge", [0, JUST_BELOW_1], [-5e-324, 1]),
    (BatchConfig, "size", [0], [-1]),
    (BatchConfig, "joined", [2], [1]),
    (BatchConfig, "fanout", [(1,), (1, 2)], [(), (0,), (2, 0), (1.0,), [1], (True,)]),
    (BatchConfig, "per_step", [1], [0]),
    (BatchConfig, "penalty_neighbours", [2], [1]),
    (BatchConfig, "penalty_nodes", [2], [1]),
]


def test_defaults_are_the_papers() -> None:
    config = TrainConfig()
    assert (config.lr, config.weight_decay, config.epochs, config.patience) == (0.01, 5e-4, 1500, 100)
    assert (config.penalty_weight, config.rule, config.saw_test) == (0.01, "val-loss", False)


def test_what_is_left_out_is_what_it_always_was() -> None:
    assert vars(TrainConfig()) == TRAIN
    assert vars(Consistency()) == CONSISTENCY
    assert vars(BatchConfig(kind="clusters")) == BATCH
    assert [BatchConfig(kind=kind).nodes for kind in ("clusters", "neighbours")] == [32768, 1024]
    assert BatchConfig(kind="clusters", size=7).nodes == 7
    assert (TrainConfig().passes, TrainConfig(consistency=Consistency()).passes) == (1, 4)


@pytest.mark.parametrize(("kind", "name", "good", "bad"), EDGES)
def test_a_number_may_be_all_that_its_remedy_says_and_no_more(
    kind: Any, name: str, good: list[Any], bad: list[Any]
) -> None:
    needed = {"kind": "clusters"} if kind is BatchConfig else {}
    for value in good:
        assert getattr(kind(**needed, **{name: value}), name) == value
    for value in bad:
        with pytest.raises(InputError, match=name):
            kind(**needed, **{name: value})


def test_the_last_number_of_a_fanout_serves_all_further_hops() -> None:
    config = BatchConfig(kind="neighbours", fanout=(10, 5))
    assert [config.fanout_of(hops) for hops in range(4)] == [(), (10,), (10, 5), (10, 5, 5)]


def test_the_weight_of_consistency_climbs_over_its_ramp() -> None:
    assert [Consistency(weight=2.0, ramp=4).weight_at(epoch) for epoch in (1, 2, 4, 5)] == [
        0.5,
        1.0,
        2.0,
        2.0,
    ]
    assert Consistency(weight=2.0).weight_at(1) == 2.0


def test_settings_are_told_as_toml_can_say_them() -> None:
    assert "clip" not in config_to(TrainConfig()) and config_to(TrainConfig(clip=1.0))["clip"] == 1.0
    batch = BatchConfig(kind="neighbours", fanout=(3, 2))
    assert config_to(batch)["fanout"] == [3, 2] and batch_config_from(config_to(batch)) == batch
    with pytest.raises(InputError, match=r"batch: 'sizes' is no setting of batches; there are kind, size"):
        batch_config_from({"sizes": 3})
    with pytest.raises(InputError, match=r"mine: consistency\.pass is unknown; there are passes, weight"):
        config_from({"consistency": {"pass": 3}}, "mine")
    with pytest.raises(InputError, match=r"batch\.joined=1: give a whole number, 2 or more"):
        BatchConfig(kind="clusters", joined=1)
    with pytest.raises(InputError, match=r"mine: not valid TOML \(.+\); mend that line"):
        read_toml("a = ", "mine")


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
