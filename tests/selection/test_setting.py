"""What choices mean, and which of them go together."""

from typing import Any

import pytest

from conjoint.defaults import FALLBACK
from conjoint.errors import InputError
from conjoint.selection.setting import Setting, check_value, known_settings, make_setting


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "gat", "intervention": "mf"}, "--intervention and --model gat: the model names its own"),
        ({"strategy": "implicit"}, "--strategy implicit: goes with --intervention; name one"),
        ({"strategy": "explicit", "intervention": "auto"}, "--intervention auto tries both; leave it out"),
        ({"strategy": "both", "intervention": "mf"}, "--strategy both: choose one of implicit, explicit"),
        ({"intervention": "nonsense"}, "--intervention nonsense: .*, or auto"),
        ({"train": {"consistency": {}}}, "--consistency: the members have their own; name a --model"),
        ({"model": "gat", "search": {"minutes": 3}}, "--minutes: goes with the default, an ensemble"),
        ({"search": {"minutes": 0.0}}, "minutes=0.0"),
        ({"search": {"trials": 0}}, "trials=0"),
        ({"search": {"metric": "luck"}}, "metric 'luck' is not known"),
        ({"settings": {"nonsense": 1}}, "no member of the ensemble has no such setting"),
        ({"train": {"nonsense": 1}}, "nonsense"),
        ({"model": "gat", "settings": {"nonsense": 1}}, "gat has no such setting"),
        ({"model": "gat", "train": {"lr": -1.0}}, "lr=-1.0"),
        ({"intervention": "auto", "train": {"lr": -1.0}}, "lr=-1.0"),
    ],
)
def test_what_does_not_go_together_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_setting(**given, typed="--{}")


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({}, "ensemble"),
        ({"model": "ensemble"}, "ensemble"),
        ({"model": "gcn"}, "gcn"),
        ({"intervention": "mf"}, "cat-i-mf"),
        ({"intervention": "mf", "strategy": "explicit"}, "cat-e-mf"),
        ({"intervention": "mf+smooth", "strategy": "implicit"}, "cat-i-mf+smooth"),
        ({"intervention": "auto"}, FALLBACK),
        ({"in_parts": True}, FALLBACK),
        ({"batch": {"kind": "clusters"}}, FALLBACK),
        ({"batch": {"size": 9}}, FALLBACK),
        ({"batch": {"kind": "auto"}}, "ensemble"),
        ({"batch": {"kind": "full"}}, "ensemble"),
        ({"train": {"penalty_weight": 0.1}}, FALLBACK),
        ({"settings": {"heads": 2}}, FALLBACK),
        ({"settings": {"num_layers": 2}}, FALLBACK),
        ({"settings": {"hidden": 2}}, "ensemble"),
    ],
)
def test_which_model_choices_mean(given: dict[str, Any], model: str) -> None:
    made = make_setting(**given)
    assert made.model == model and made.is_ensemble is (model == "ensemble")
    assert made.undecided == ("auto" if given.get("intervention") == "auto" else None)
    assert (made.settings, made.train, made.batch) == tuple(
        given.get(name, {}) for name in ("settings", "train", "batch")
    )


def test_balanced_weights_are_judged_by_balanced_accuracy() -> None:
    balanced = {"class_weight": "balanced"}
    assert make_setting(train=balanced).search == {"metric": "balanced-accuracy"}
    assert make_setting(train=balanced, search={"metric": "macro-f1"}).search == {"metric": "macro-f1"}
    assert make_setting(train={"class_weight": {"a": 2.0}}).search == {}


def test_a_setting_is_changed_into_others() -> None:
    plain = Setting("gat", {"hidden": 3, "heads": 2}, {"lr": 0.5}, undecided="auto")
    assert plain.decided("gcn") == Setting("gcn", {"hidden": 3}, {"lr": 0.5})
    assert plain.config(4).seed == 4 and plain.config(4).lr == 0.5
    whole = make_setting(search={"trials": 3, "minutes": 1.0})
    assert whole.within(2.5).search == {"trials": 3, "minutes": 2.5}
    assert (whole.config(4).epochs, whole.config(4).row_normalise, whole.config(4).seed) == (1, "never", 4)
    assert whole.attention_instead() == Setting(FALLBACK)
    with pytest.raises(InputError, match="goes with an ensemble, and this is a run of gat"):
        plain.within(2.5)
    with pytest.raises(InputError, match="minutes=0"):
        whole.within(0.0)


@pytest.mark.parametrize(
    ("value", "usual", "sound"),
    [
        (3, 8, True), (3.0, 8, False), (True, 8, False), ("3", 8, False), (None, 8, False),
        (3, 0.5, True), (0.1, 0.5, True), (True, 0.5, False), (None, 0.5, False),
        (True, False, True), (1, False, False), ("a", "b", True), (2, "b", False),
        (3, None, True), (0.5, None, True), (None, None, True), (False, None, False), ("a", None, False),
    ],
)  # fmt: skip
def test_values_are_of_the_kind_of_their_default(value: Any, usual: Any, sound: bool) -> None:
    if sound:
        check_value("name", value, {"name": usual}, "gat")
        return
    with pytest.raises(InputError, match="expected a value like"):
        check_value("name", value, {"name": usual}, "gat")


def test_what_may_be_set() -> None:
    assert known_settings("gcn") == {"hidden": 16, "num_layers": 2, "dropout": 0.5}
    every = known_settings("ensemble")
    assert {"hidden", "heads", "hops", "steps", "roles"} <= every.keys()
