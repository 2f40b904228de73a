"""What members of an ensemble cost and when they take part."""

from dataclasses import replace
from typing import Any

import pytest

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.selection.members import MEMBERS, Budget, Facts, Member, facts_of, with_settings
from small_training import small_data

FACTS = Facts(nodes=100, entries=500, features=80, feature_entries=8000, classes=3, labels=60)
BY_NAME = {member.name: member for member in MEMBERS}


def network_seconds(hidden: int, layers: int, epochs: int, passes: int) -> float:
    layer = hidden * (2 * 500 + 3 * hidden * 100 + 20 * 100)
    return epochs * 0.001 * layers + 3 * epochs * passes * (layers * layer + hidden * 8000) / 1.5e10


@pytest.mark.parametrize(
    ("member", "facts", "seconds"),
    [
        (Member("a", "boosting"), FACTS, 4 * 600 * (3 * 64 + 6 + 7) * 2060 / 5e8),
        (Member("a", "boosting"), replace(FACTS, classes=2, features=5), 4 * 200 * 26 * 2060 / 5e8),
        (Member("a", "logistic", {"hops": "012"}), FACTS, 600 * 3 * 3 * (8000 + 1000) / 5e9),
        (Member("a", "label-propagation"), FACTS, 600 * 3 * 500 / 5e9),
        (Member("a", "rescat-i-mf", {"hidden": 16}, {"epochs": 30}), FACTS, network_seconds(16, 2, 30, 1)),
        (Member("a", "resgat", {"num_layers": 5}, {"epochs": 7}), FACTS, network_seconds(32, 5, 7, 1)),
        (
            Member("a", "cat-i-mf", {"hidden": 8}, {"epochs": 9, "consistency": {"passes": 4}}),
            FACTS,
            network_seconds(64, 2, 9, 4),  # eight heads of that width
        ),
        (Member("a", "spread-trust"), FACTS, network_seconds(32, 8, 1, 1)),
        (Member("a", "monet", {"hidden": 16}, {"epochs": 3}), FACTS, network_seconds(16, 2, 3, 1)),
    ],
)
def test_the_seconds_of_a_training_by_hand(member: Member, facts: Facts, seconds: float) -> None:
    assert member.seconds(facts) == pytest.approx(seconds, rel=1e-9)


def test_what_members_are() -> None:
    of = {name: (one.residual, one.family, one.conjoint, one.kind) for name, one in BY_NAME.items()}
    assert of["logistic"] == (False, None, False, "logistic")
    assert of["perceptron"] == (True, "residual", False, "network")
    assert of["residual CAT, mf"] == (True, "residual", True, "network")
    assert of["deep residual CAT, mf"] == (True, None, True, "network")
    assert of["CAT, trust"] == (False, None, True, "network")
    assert of["boosting"][3] == "boosting"


def test_who_takes_part_on_which_graph() -> None:
    def names(facts: Facts) -> set[str]:
        return {member.name for member in MEMBERS if member.suits(facts)}

    many, few = replace(FACTS, labels=20), replace(FACTS, labels=19)
    assert not many.few_labels and few.few_labels and FACTS.has_features
    assert names(many) - names(few) == {"plain CAT, mf", "deep residual CAT, mf"}
    assert names(few) - names(many) == {
        "random propagation, trust", "random propagation, gate", "CAT, mf", "CAT, trust",
    }  # fmt: skip
    assert names(many) - names(replace(many, has_features=False)) == {"logistic", "smoothed logistic"}
    assert [one.name for one in MEMBERS if one.blind] == ["smoothed logistic", "residual CAT, mf"]
    assert {one.name for one in MEMBERS if one.first} == {
        "random propagation, trust",
        "random propagation, gate",
    }
    plain = Member("a", "gat")
    assert not plain.first and not plain.blind and plain.suits(FACTS)


def test_members_follow_what_was_asked_of_all_as_far_as_they_know_it() -> None:
    asked = {one.name: one for one in with_settings(MEMBERS, {"hidden": 5}, {"epochs": 7})}
    assert asked["logistic"] == BY_NAME["logistic"] and asked.keys() == BY_NAME.keys()
    assert asked["CAT, mf"].settings == {"hidden": 5}
    assert asked["CAT, mf"].train == {**BY_NAME["CAT, mf"].train, "epochs": 7}
    weighted = {one.name: one for one in with_settings(MEMBERS, {}, {"class_weight": "balanced", "lr": 1.0})}
    assert BY_NAME.keys() - weighted.keys() == {"label propagation"}
    assert weighted["boosting"].train == {"class_weight": "balanced"}
    assert weighted["CAT, mf"].train["class_weight"] == "balanced" and weighted["CAT, mf"].train["lr"] == 1.0


@pytest.mark.parametrize("given", [{"minutes": 0.0}, {"minutes": 1e6}, {"minutes": -1.0}, {"trials": 0}])
def test_a_budget_is_more_than_nothing_and_finite(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        Budget(**given)
    assert Budget() == Budget(None, None) and Budget(1e-9, 1).trials == 1 and Budget(0.5).minutes == 0.5


def test_facts_of_a_graph() -> None:
    graph = as_graph(small_data())
    expected = Facts(60, graph.num_edges + 60, 12, 60 * 12, 3, 7)
    assert facts_of(graph, 7) == expected
