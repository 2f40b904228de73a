"""Choosing an intervention: the best candidate by validation wins, and test nodes have no say."""

from dataclasses import replace
from typing import Any

import pytest
from torch_geometric.data import Data

from conjoint.data.splits import Split, make_split
from conjoint.errors import InputError
from conjoint.evaluation import choice as module
from conjoint.evaluation.choice import Trial, candidates_of, choose
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
    field, rounds = len(found.candidates), [found.standing(name)[0] for name in found.candidates]
    assert [sum(r >= k for r in rounds) for k in (1, 2, 3)] == [
        field,
        (field + 1) // 2,
        ((field + 1) // 2 + 1) // 2,
    ]
    assert {"cat-i-zero", "cat-e-zero", "cat-i-mf", "cat-e-mf", "cat-e-smooth"} <= set(found.candidates)
    best = max(t.val_accuracy for t in found.trials if t.seed == 0)
    assert max(t.val_accuracy for t in found.trials if t.seed == 0 and found.standing(t.model)[0] > 1) == best


def test_the_same_graph_gives_the_same_choice_whatever_the_test_labels(data: Data, split: Split) -> None:
    one = choose(data, split, CONFIG, SMALL)
    changed = data.clone()
    changed.y = data.y.clone()
    test = split.reveal_test()
    changed.y[test] = (changed.y[test] + 1) % 3
    assert choose(changed, split, CONFIG, SMALL) == one


def pretend(results: dict[str, tuple[float, float]]) -> Any:
    def train(name: str, data: Data, split: Split, config: TrainConfig, settings: Any) -> Trial:
        accuracy, loss = results.get(name, (0.5, 1.0))
        return Trial(name, config.seed, accuracy, loss, 10)

    return train


def test_validation_accuracy_decides_and_loss_breaks_ties(
    data: Data, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_try", pretend({"cat-e-smooth": (0.8, 0.9), "cat-i-mf": (0.8, 0.7)}))
    assert choose(data, split, CONFIG).model == "cat-i-mf"
    monkeypatch.setattr(module, "_try", pretend({"cat-e-smooth": (0.81, 0.9), "cat-i-mf": (0.8, 0.7)}))
    assert choose(data, split, CONFIG).model == "cat-e-smooth"


def test_trials_are_short_and_never_see_test_nodes(
    data: Data, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[TrainConfig]()

    def train(name: str, data: Data, split: Split, config: TrainConfig, settings: Any) -> Trial:
        seen.append(config)
        return Trial(name, config.seed, 0.5, 1.0, 10)

    monkeypatch.setattr(module, "_try", train)
    choose(data, split, TrainConfig(rule="release", see_test=True, seed=7))
    assert all(c.epochs == 200 and c.patience == 50 and not c.saw_test for c in seen)
    assert {c.seed for c in seen} == {7, 8, 9}


def test_when_everything_diverges_that_is_said(data: Data, split: Split) -> None:
    with pytest.raises(InputError, match="every candidate diverged"):
        choose(data, split, replace(CONFIG, lr=1e30), SMALL)


def test_candidates_are_models_of_the_zoo() -> None:
    assert candidates_of(["mf", "nonsense"]) == ["cat-i-mf", "cat-e-mf"]
