"""Choosing an intervention: the best candidate by validation wins, and test nodes have no say."""

from dataclasses import replace
from typing import Any

import pytest

from conjoint.data import Split, make_split
from conjoint.errors import Diverged, InputError
from conjoint.graph.graph import Graph
from conjoint.selection import choose as module
from conjoint.selection.choose import Trial, candidates_of
from conjoint.selection.choose import choose_intervention as choose
from conjoint.training import Fitted, TrainConfig
from small_training import small_model
from topics import topic_graph

CONFIG = TrainConfig(epochs=8, patience=0, lr=0.02)
LONG = TrainConfig()
SMALL = {"hidden": 4, "heads": 2, "rank": 4}


@pytest.fixture(scope="module")
def data() -> Graph:
    return topic_graph(random_edges=900)


@pytest.fixture(scope="module")
def split(data: Graph) -> Split:
    return make_split(data, "fraction", 0, train=0.3, val=0.3)


def test_trainings_are_real_and_halve_the_field(data: Graph, split: Split) -> None:
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


def test_the_same_graph_gives_the_same_choice_whatever_the_test_labels(data: Graph, split: Split) -> None:
    one = choose(data, split, CONFIG, SMALL)
    changed = data.changed(y=data.y.clone())
    test = split.reveal_test()
    changed.y[test] = (changed.y[test] + 1) % 3
    assert choose(changed, split, CONFIG, SMALL) == one


def pretended(config: TrainConfig, accuracy: float, loss: float) -> Fitted:
    row = {"val_accuracy": accuracy, "val_loss": loss}
    return Fitted(small_model(), config, [row], 1, "epochs")


def pretend(results: dict[str, tuple[float, float]]) -> Any:
    def train(name: str, graph: Graph, split: Split, config: TrainConfig, *_: Any) -> Fitted:
        return pretended(config, *results.get(name, (0.5, 1.0)))

    return train


def test_validation_accuracy_decides_and_loss_breaks_ties(
    data: Graph, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "train_candidate", pretend({"cat-e-smooth": (0.8, 0.9), "cat-i-mf": (0.8, 0.7)})
    )
    assert choose(data, split, CONFIG).model == "cat-i-mf"
    monkeypatch.setattr(
        module, "train_candidate", pretend({"cat-e-smooth": (0.81, 0.9), "cat-i-mf": (0.8, 0.7)})
    )
    assert choose(data, split, CONFIG).model == "cat-e-smooth"


def test_full_trainings_decide_alone(data: Graph, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick learner that ends below a slow one must not win by what it had early."""

    def train(name: str, graph: Graph, split: Split, config: TrainConfig, *_: Any) -> Fitted:
        short = config.epochs < LONG.epochs
        accuracy = {"cat-i-mf": 0.9 if short else 0.6, "cat-e-smooth": 0.7}.get(name, 0.5)
        return pretended(config, accuracy, 1.0)

    monkeypatch.setattr(module, "train_candidate", train)
    found = choose(data, split, LONG)
    assert found.model == "cat-e-smooth" and found.standing("cat-i-mf") == (4, 0.6, 1.0)


def test_first_rounds_are_short_and_none_sees_test_nodes(
    data: Graph, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[TrainConfig]()

    def train(name: str, graph: Graph, split: Split, config: TrainConfig, *_: Any) -> Fitted:
        seen.append(config)
        return pretended(config, 0.5, 1.0)

    monkeypatch.setattr(module, "train_candidate", train)
    found = choose(data, split, TrainConfig(rule="release", see_test=True, seed=7))
    assert not any(config.saw_test for config in seen)
    assert {(c.seed, c.epochs, c.patience) for c in seen} == {
        (7, 200, 50),
        (8, 200, 50),
        (7, 1500, 100),
        (8, 1500, 100),
    }
    assert not found.fitted  # they were not trained as was asked for


def test_the_winners_full_trainings_are_kept(data: Graph, split: Split) -> None:
    found = choose(data, split, CONFIG, SMALL)
    full = [trial for trial in found.trials if trial.model == found.model and not trial.short]
    assert [trial.seed for trial in full] == list(found.fitted)
    assert all(found.fitted[t.seed][0].metrics["val_loss"] == t.val_loss for t in full)
    assert "fitted" not in found.to_dict()


def test_when_everything_diverges_that_is_said(data: Graph, split: Split) -> None:
    with pytest.raises(InputError, match="every candidate diverged"):
        choose(data, split, replace(CONFIG, lr=1e30), SMALL)


def test_candidates_are_models_of_the_zoo() -> None:
    assert candidates_of(["mf", "nonsense"]) == ["cat-i-mf", "cat-e-mf"]


def test_a_candidate_that_diverges_is_the_last(
    data: Graph, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(name: str, graph: Graph, split: Split, config: TrainConfig, *_: Any) -> Fitted:
        if name == "cat-i-mf":
            raise Diverged("loss is nan")
        return pretended(config, 0.0, 1e9)

    monkeypatch.setattr(module, "train_candidate", train)
    found = choose(data, split, LONG)
    assert found.standing("cat-i-mf") == (1, 0.0, 1e30) and found.model != "cat-i-mf"
    [trial] = [one for one in found.trials if one.model == "cat-i-mf"]
    assert trial == Trial("cat-i-mf", 0, 0.0, 1e30, 0, True)
