"""Choosing an intervention: the best candidate by validation wins, and test nodes have no say."""

from dataclasses import replace
from typing import Any

import pytest
from torch_geometric.data import Data

from conjoint.data.splits import Split, make_split
from conjoint.errors import InputError
from conjoint.evaluation import choice as module
from conjoint.evaluation.choice import candidates_of, choose
from conjoint.evaluation.trials import Trial
from conjoint.training import TrainConfig
from topics import topic_graph

CONFIG = TrainConfig(epochs=8, patience=0, lr=0.02)
SMALL = {"hidden": 4, "heads": 2, "rank": 4}


@pytest.fixture(scope="module")
def data() -> Data:
    return topic_graph(random_edges=900)


@pytest.fixture(scope="module")
def split(data: Data) -> Split:
    return make_split(data, "fraction", 0, train=0.3, val=0.3)


def test_trainings_are_real_and_halve_the_field(data: Data, split: Split) -> None:
    told = list[Trial]()
    found = choose(data, split, CONFIG, SMALL, on_trial=told.append)
    assert tuple(told) == found.trials and found.model in found.candidates
    field, trained = len(found.candidates), [found.standing(name)[0] for name in found.candidates]
    half = (field + 1) // 2
    assert [sum(times >= k for times in trained) for k in (1, 2, 4)] == [field, half, (half + 1) // 2]
    assert {f"cat-{s}-{name}" for s in "ie" for name in ("zero", "mf", "smooth", "trust")} <= set(
        found.candidates
    )
    best = max(t.val_accuracy for t in found.trials if t.seed == 0 and t.short)
    assert (
        max(
            t.val_accuracy for t in found.trials if t.seed == 0 and t.short and found.standing(t.model)[0] > 1
        )
        == best
    )


def test_the_same_graph_gives_the_same_choice_whatever_the_test_labels(data: Data, split: Split) -> None:
    one = choose(data, split, CONFIG, SMALL)
    changed = data.clone()
    changed.y = data.y.clone()
    test = split.reveal_test()
    changed.y[test] = (changed.y[test] + 1) % 3
    assert choose(changed, split, CONFIG, SMALL) == one


def pretend(results: dict[str, tuple[float, float]]) -> Any:
    def train(*given: Any) -> Trial:
        name, _, _, config, _, short, _ = given
        accuracy, loss = results.get(name, (0.5, 1.0))
        return Trial(name, config.seed, accuracy, loss, 10, short)

    return train


def test_validation_accuracy_decides_and_loss_breaks_ties(
    data: Data, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "attempt", pretend({"cat-e-smooth": (0.8, 0.9), "cat-i-mf": (0.8, 0.7)}))
    assert choose(data, split, CONFIG).model == "cat-i-mf"
    monkeypatch.setattr(module, "attempt", pretend({"cat-e-smooth": (0.81, 0.9), "cat-i-mf": (0.8, 0.7)}))
    assert choose(data, split, CONFIG).model == "cat-e-smooth"


def test_full_trainings_decide_alone(data: Data, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick learner that ends below a slow one must not win by what it had early."""

    def train(*given: Any) -> Trial:
        name, _, _, config, _, short, _ = given
        accuracy = {"cat-i-mf": 0.9 if short else 0.6, "cat-e-smooth": 0.7}.get(name, 0.5)
        return Trial(name, config.seed, accuracy, 1.0, 10, short)

    monkeypatch.setattr(module, "attempt", train)
    found = choose(data, split, CONFIG)
    assert found.model == "cat-e-smooth" and found.standing("cat-i-mf") == (4, 0.6, 1.0)


def test_first_rounds_are_short_and_none_sees_test_nodes(
    data: Data, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[tuple[TrainConfig, bool]]()

    def train(*given: Any) -> Trial:
        name, _, _, config, _, short, _ = given
        seen.append((config, short))
        return Trial(name, config.seed, 0.5, 1.0, 10, short)

    monkeypatch.setattr(module, "attempt", train)
    choose(data, split, TrainConfig(rule="release", see_test=True, seed=7))
    assert not any(config.saw_test for config, _ in seen)
    assert {(c.seed, c.epochs, c.patience, short) for c, short in seen} == {
        (7, 200, 50, True),
        (8, 200, 50, True),
        (7, 1500, 100, False),
        (8, 1500, 100, False),
    }


def test_when_everything_diverges_that_is_said(data: Data, split: Split) -> None:
    with pytest.raises(InputError, match="every candidate diverged"):
        choose(data, split, replace(CONFIG, lr=1e30), SMALL)


def test_candidates_are_models_of_the_zoo() -> None:
    assert candidates_of(["mf", "nonsense"]) == ["cat-i-mf", "cat-e-mf"]
