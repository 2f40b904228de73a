"""The steps of the ensemble's search one by one, with trainings that are made up."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from conjoint.errors import Diverged, InputError, Interrupted
from conjoint.graph.graph import as_graph
from conjoint.graph.splits import Split, every_label
from conjoint.selection import joining, member_training
from conjoint.selection import search as module
from conjoint.selection.folds import fold_splits
from conjoint.selection.joining import Judged
from conjoint.selection.member_training import Outcome, curve_of
from conjoint.selection.members import MEMBERS, Budget, Facts, Member
from conjoint.selection.portfolio import Trial
from conjoint.selection.search import Search, default_minutes, learn_ensemble
from conjoint.training import TrainConfig
from conjoint.training.metrics import all_metrics, log_loss
from small_training import small_data

GRAPH = as_graph(small_data())
ALL = every_label(GRAPH.y.numpy(), 0)
CLOSED = [one for one in MEMBERS if one.kind in ("logistic", "label-propagation")]
BY_NAME = {member.name: member for member in MEMBERS}


def searching(
    members: Sequence[Member] = MEMBERS, budget: Budget | None = None, split: Split = ALL, **options: Any
) -> Search:
    parts = {"metric": "accuracy", "folder": None, "tell": None, "watch": None, **options}
    order = (parts["metric"], budget or Budget(trials=30), parts["folder"], members)
    return Search(GRAPH, split, 3, *order, parts["tell"], parts["watch"])


def judged(merits: dict[str, float], **options: Any) -> Search:
    """A search whose members have these merits on the first fold."""
    made = searching(**options)
    for name, value in merits.items():
        made.judged[name].merits[0] = value
    return made


@pytest.mark.parametrize(
    ("best", "nodes", "error"),
    [
        (0.5, 100, 0.05),
        (1.0, 100, 0.01),  # as of a share of 99 %
        (0.0, 100, 0.01),
        (0.5, 10**6, 0.002),
        (-0.5, 100, np.inf),  # a loss has no such error
        (1.5, 100, np.inf),
    ],
)
def test_what_may_be_luck_on_the_first_fold(best: float, nodes: int, error: float) -> None:
    made: Any = judged({"logistic": best, "boosting": best - 1.0})
    made.splits = [SimpleNamespace(val=torch.arange(nodes))]
    assert made.worst_worth_trying() == pytest.approx(best - 3 * error)


def test_a_family_is_hopeless_where_all_that_use_edges_are_far_behind() -> None:
    far = {"logistic": 0.99, "perceptron": 0.1}
    assert not judged(far).hopeless("residual") and not judged({}).hopeless("residual")
    assert judged({**far, "residual attention": 0.2}).hopeless("residual")
    assert not judged({**far, "residual attention": 0.2, "residual CAT, mf": 0.98}).hopeless("residual")
    assert not judged({**far, "deep residual CAT, mf": 0.2}).hopeless("residual")
    assert not judged({**far, "boosting": 0.1}).hopeless(None)
    edge = judged({**far, "residual attention": 0.0})
    edge.judged["residual attention"].merits[0] = edge.worst_worth_trying()
    assert not edge.hopeless("residual")


def test_members_near_the_best_go_on_and_of_networks_five() -> None:
    near = {name: 0.9 - k / 1000 for k, name in enumerate(BY_NAME) if name in searching().judged}
    made = judged({**near, "boosting": 0.0})
    order = [member.name for member in made.promising()]
    networks = [name for name in order if BY_NAME[name].kind == "network"]
    assert order == sorted(order, key=lambda name: -near[name]) and len(networks) == module.KEPT == 5
    assert [name for name in order if name not in networks] == [one.name for one in CLOSED]
    edge = judged({"logistic": 0.9, "boosting": 0.0})
    edge.judged["boosting"].merits[0] = edge.worst_worth_trying()
    assert [member.name for member in edge.promising()] == ["logistic", "boosting"]
    with pytest.raises(InputError, match="every model diverged"):
        searching().promising()


def test_a_number_of_trainings_is_a_limit() -> None:
    made = searching(budget=Budget(trials=4))
    made.trials = [SimpleNamespace()] * 2  # type: ignore[list-item]
    assert made.affordable(CLOSED[0], 0) and made.deadline is None
    for trainings, fits in ((1, True), (2, True), (3, False)):
        made.splits = [ALL] * (trainings + 1)
        assert made.affordable(CLOSED[0], 1) is fits


def test_the_time_that_is_left_is_a_limit_but_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
    made = judged({"logistic": 0.5}, budget=Budget(minutes=2.0))
    assert made.deadline == 220.0
    made.deadline, known = 200.0, made.judged["logistic"]
    known.merits[1], known.seconds = 0.5, 50.0  # 25 each

    def fits(trainings: int, processes: int = 1) -> bool:
        made.splits, made.processes = [ALL] * (trainings + 1), processes
        return made.affordable(known.member, 1)

    assert fits(9)
    made.trials = [SimpleNamespace()]  # type: ignore[list-item]
    assert fits(3) and not fits(4) and fits(6, 2) and not fits(7, 2)
    slow = Member("slow", "logistic", {"hops": "0"})
    made.judged["slow"] = Judged(slow)
    monkeypatch.setattr(made, "predicted", lambda member: 49.0)
    assert made.affordable(slow, 0)
    monkeypatch.setattr(made, "predicted", lambda member: 50.0)  # half of the time is for the other folds
    assert not made.affordable(slow, 0)
    made.crossed = False
    assert made.affordable(slow, 0)


def test_a_prediction_is_corrected_by_members_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Member, "seconds", lambda member, facts: 2.0 if member.kind == "logistic" else 7.0)
    made = judged({"logistic": 0.5, "boosting": 0.5})
    made.judged["logistic"].merits[1] = 0.5
    made.judged["logistic"].seconds, made.judged["boosting"].seconds = 12.0, 70.0
    assert made.predicted(BY_NAME["logistic over hops"]) == 2.0 * 12.0 / 4.0
    assert made.predicted(BY_NAME["label propagation"]) == 7.0
    for foretold, factor in ((0.25, 1.0), (0.375, 16.0)):  # half a second is too little to tell
        monkeypatch.setattr(Member, "seconds", lambda member, facts, foretold=foretold: foretold)
        assert made.predicted(BY_NAME["logistic over hops"]) == foretold * factor


def test_minutes_follow_the_size() -> None:
    facts = Facts(nodes=10_000, entries=310_000, features=1, feature_entries=1, classes=2, labels=1)
    assert default_minutes(facts) == pytest.approx(5.0)
    assert default_minutes(replace(facts, nodes=0, entries=0)) == 1.0
    assert default_minutes(replace(facts, nodes=10**7)) == 15.0
    assert default_minutes(replace(facts, nodes=20_000, entries=0)) == 5.0


def test_a_curve_is_thinned_out() -> None:
    rows = [
        {"epoch": k, "prediction_loss": k / 3, "val_loss": 2.0, "val_accuracy": 0.5, "seconds": 1.0}
        for k in range(1, 131)
    ]
    assert len(curve_of(rows[:60])) == 60 and len(curve_of(rows[:61])) == 31
    assert curve_of(rows) == tuple((k, round(k / 3, 5), 2.0, 0.5) for k in range(1, 131, 3))
    assert curve_of(rows[:1]) == () == curve_of([]) and len(curve_of(rows[:2])) == 2
    assert curve_of([rows[0], {"epoch": 2, "prediction_loss": 1.0}, rows[2]]) == curve_of([rows[0], rows[2]])


def test_later_folds_of_networks_take_the_epochs_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def train(spec: Any, graph: Any, split: Any, config: TrainConfig, **more: Any) -> Any:
        seen.append((spec, split, config, more))
        return SimpleNamespace(model=torch.nn.Linear(1, 1), config=config, history=[], best_epoch=1), {"a": 1}

    monkeypatch.setattr(member_training, "train_model", train)
    monkeypatch.setattr(member_training, "predict_proba", lambda *_: torch.zeros(60, 3))
    entered: list[Any] = []

    def watch(*told: Any) -> Any:
        entered.append(told)
        return nullcontext(lambda row: row["epoch"] * 2)

    made = searching(watch=watch)
    asked = {"epochs": 40, "patience": 9, "rule": "release", "see_test": True}
    member = replace(BY_NAME["residual CAT, mf"], train=asked)
    made.judged[member.name].epochs = 17
    for one, fold in ((member, 0), (member, 2), (BY_NAME["logistic"], 2)):
        made.judged[one.name].member = one
        assert made.outcome(made.job(one, fold)).settings == {"a": 1}
    (spec, split, first, more), (_, _, later, _), (_, _, closed, _) = seen
    assert (spec.name, spec.features, spec.classes, spec.num_nodes) == ("rescat-i-mf", 12, 3, 60)
    assert spec.settings == {"hidden": 64} and split is made.splits[0]
    assert more["run"] is None and more["progress"]({"epoch": 21}) == 42
    assert (first.epochs, first.patience, first.seed, first.evaluate_every) == (40, 9, 3, 1)
    assert (later.epochs, later.patience, later.seed, later.evaluate_every) == (17, 0, 5, 17)
    assert (closed.epochs, closed.seed) == (TrainConfig().epochs, 5) and first.rule == "val-loss"
    assert entered[1] == (f"{member.name}, fold 3 of {len(made.splits)}", 17)


class Stub:
    """A training that gives these shares."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
        rng = np.random.default_rng(0)
        shares = rng.dirichlet(np.ones(3), 60).astype(np.float32)
        row = {"epoch": 1, "prediction_loss": 1.0, "val_loss": 2.0, "val_accuracy": 0.5}
        self.found = Outcome({}, {"hidden": 2}, False, shares, [row] * 6, 4, 2.5)
        monkeypatch.setattr(search, "outcome", lambda job: self.found)


@pytest.mark.parametrize("fold", [0, 1])
def test_what_is_noted_of_a_training(fold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    made = searching(metric="log-loss", tell=told.append)
    stub, member = Stub(monkeypatch, made), BY_NAME["residual CAT, mf"]
    made.attempt(member, fold)
    val = made.splits[fold].val.numpy()
    truth, found = GRAPH.y.numpy()[val], stub.found.shares[val]
    [trial], known = made.trials, made.judged[member.name]
    loss = log_loss(truth, found)
    assert (trial.member, trial.fold, trial.merit, trial.val_loss) == (member.name, fold, -loss, loss)
    assert trial.val_accuracy == (found.argmax(1) == truth).mean()
    assert (trial.epochs, trial.seconds, len(trial.curve)) == (6, 2.5, 0 if fold else 6)
    assert known.epochs == 4 and known.seconds == 2.5 and known.merits == {fold: -loss}
    assert known.fitted == {fold: stub.found}
    assert told[-1] == f"{member.name}, {made.splits[fold].name}: log-loss {loss:.3f}, 2.5 s"


def test_epochs_are_those_of_the_first_training_and_seconds_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made = searching()
    stub, member = Stub(monkeypatch, made), BY_NAME["residual CAT, mf"]
    made.attempt(member, 0)
    stub.found = replace(stub.found, best_epoch=9, seconds=1.5)
    made.attempt(member, 1)
    assert made.judged[member.name].epochs == 4 and made.judged[member.name].seconds == 4.0


def test_a_training_that_diverges_is_noted_and_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = searching()

    def diverge(*_: object) -> None:
        raise Diverged("loss is nan")

    monkeypatch.setattr(made, "outcome", diverge)
    clock = iter([1.0, 3.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    made.attempt(CLOSED[0], 2)
    assert made.trials == [Trial(CLOSED[0].name, 2, -1.0, 0.0, 1e30, 0, 2.0)]
    assert not made.judged[CLOSED[0].name].merits


def test_an_interrupt_between_epochs_stops_after_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = searching()
    Stub(monkeypatch, made)
    made.interrupt = SimpleNamespace(is_set=lambda: False)
    made.attempt(CLOSED[0], 0)
    made.interrupt = SimpleNamespace(is_set=lambda: True)
    with pytest.raises(Interrupted, match="stopped in smoothed logistic after epoch 6"):
        made.attempt(CLOSED[1], 0)
    assert len(made.trials) == 2


def test_members_of_every_fold_count_and_else_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made = judged({"logistic": 0.5, "boosting": 0.5})
    assert [one.member.name for one in made.complete()] == ["logistic", "boosting"]
    made.judged["boosting"].merits.update(dict.fromkeys(range(len(made.splits)), 0.5))
    assert [one.member.name for one in made.complete()] == ["boosting"]
    made.crossed = False
    assert [one.member.name for one in made.complete()] == ["logistic", "boosting"]


def test_nodes_are_judged_by_trainings_that_did_not_choose_by_them() -> None:
    """Of folds 0, 1, 2 the first chose epochs; a node of two folds has the mean of both."""
    made: Any = searching(CLOSED[:1])
    part = [torch.tensor([0, 1]), torch.tensor([2, 5]), torch.tensor([4, 5])]
    made.splits = [SimpleNamespace(val=val) for val in part]
    one = made.judged["logistic"]
    for fold in range(3):
        one.merits[fold] = 0.5
        one.fitted[fold] = SimpleNamespace(shares=np.arange(180.0).reshape(60, 3) + 1000 * fold)
    nodes, [found] = made.unseen([one])
    assert nodes.tolist() == [2, 4, 5]
    assert found.tolist() == [[1006, 1007, 1008], [2012, 2013, 2014], [1515, 1516, 1517]]
    del one.merits[2]
    assert made.unseen([one])[0].tolist() == [0, 1]
    one.merits[2], made.crossed = 0.5, False
    assert made.unseen([one])[0].tolist() == [0, 1]


def test_all_on_the_first_fold_the_promising_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made, done, ahead = searching(CLOSED, Budget(trials=100)), list[tuple[str, int]](), list[Any]()

    def attempt(member: Member, fold: int) -> None:
        done.append((member.name, fold))
        ahead.append([(one.name, k) for one, k in made.upcoming])
        made.judged[member.name].merits[fold] = 0.1 if member.name == "logistic" else 0.9

    monkeypatch.setattr(made, "attempt", attempt)
    made.run()
    first = sorted(CLOSED, key=lambda one: one.seconds(made.facts))
    others = [member for member in CLOSED if member.name != "logistic"]
    rest = range(1, len(made.splits))
    assert done == [(one.name, 0) for one in first] + [(one.name, k) for one in others for k in rest]
    assert made.left_out == [] and ahead[0] == done[: len(first)] and ahead[-1] == done[len(first) :]
    short = searching(CLOSED, Budget(trials=100))
    monkeypatch.setattr(short, "affordable", lambda member, fold: False)
    with pytest.raises(InputError):
        short.run()
    assert short.left_out == [one.name for one in first]


@pytest.mark.parametrize("single", [False, True])
def test_the_result_says_what_the_members_say_together(single: bool) -> None:
    order = torch.from_numpy(np.random.default_rng(0).permutation(60))
    split = Split(order[:40], order[40:], "given", 0)
    told: list[str] = []
    options: dict[str, Any] = {"members": CLOSED, "budget": Budget(trials=100), "tell": told.append}
    ensemble, spec, found = learn_ensemble(GRAPH, split, 0, single=single, **options)
    assert found.interrupted is False and found.judged is not None and found.left_out == ()
    splits = fold_splits(GRAPH, split, 0)
    assert found.folds == len(splits) == 8 and found.labels == 40
    assert told[0] == "4 kinds of models on 8 folds, 100 trainings at most"
    nodes, shares = found.judged
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert found.estimate == all_metrics(GRAPH.y.numpy()[nodes], shares)
    weights = [row["weight"] for row in found.members]
    assert weights == sorted(weights, reverse=True) and sum(weights) == pytest.approx(1.0, abs=1e-3)
    assert (weights[0] == 1.0) is single or not single
    assert all(0.0 < row["accuracy"] <= 1.0 for row in found.members)
    kept = {row["name"] for row in spec["members"]}
    assert kept == {row["name"] for row in found.members if row["weight"] > 0}
    assert sum(row["weight"] for row in spec["members"]) == pytest.approx(1.0)
    assert not ensemble.training and 0.2 < spec["temperature"] < 5.0


def test_a_validation_part_that_is_large_enough_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjoint.selection.folds.FEW_VALIDATION", 20)
    order = torch.from_numpy(np.random.default_rng(0).permutation(60))
    split, told = Split(order[:40], order[40:], "given", 0), list[str]()
    options: dict[str, Any] = {"members": CLOSED, "budget": Budget(minutes=2.0), "tell": told.append}
    found = learn_ensemble(GRAPH, split, 0, **options)[2]
    assert found.folds == 1 and found.labels == 40 and len(found.trials) == 4
    assert told[0] == "4 kinds of models on one validation part, 2.0 minutes at most"
    assert found.judged is not None and found.judged[0].tolist() == sorted(order[40:].tolist())


def test_labels_too_few_to_judge_by_use_the_sound_members_alike() -> None:
    few = Split(torch.arange(6), torch.arange(0), "all", 0)
    members = [replace(one, blind=one.name != "logistic") for one in CLOSED]
    _, spec, found = learn_ensemble(GRAPH, few, 0, members=members, budget=Budget(trials=9))
    assert spec["temperature"] == 1.0 and {one["weight"] for one in spec["members"]} == {1 / 3}
    assert found.judged is None and [row["weight"] for row in found.members] == [0.3333] * 3
    assert "logistic" not in {row["name"] for row in found.members}


def test_calibrated_shares_are_a_power_of_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for heat in (1.0, 2.0):
        monkeypatch.setattr(joining, "temperature", lambda *_, heat=heat: heat)
        options: dict[str, Any] = {"members": CLOSED, "budget": Budget(trials=100)}
        _, spec, portfolio = learn_ensemble(GRAPH, ALL, 0, **options)
        assert portfolio.judged is not None and spec["temperature"] == heat
        found[heat] = portfolio.judged[1]
    expected = np.sqrt(found[1.0])
    assert np.allclose(found[2.0], expected / expected.sum(axis=1, keepdims=True))


def test_an_interrupt_before_anything_was_judged_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise Interrupted("stopped", 0)

    monkeypatch.setattr(Search, "attempt", stop)
    with pytest.raises(Interrupted):
        learn_ensemble(GRAPH, ALL, 0, members=CLOSED, budget=Budget(trials=3))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_training_that_goes_on_long_after_the_limit_is_given_up(processes: int) -> None:
    members = [BY_NAME["label propagation"], BY_NAME["residual attention"], BY_NAME["perceptron"]]
    members = [replace(one, train={**one.train, "epochs": 10**6, "patience": 0}) for one in members]
    seen = list[str]()

    def watch(title: str, epochs: int) -> Any:
        def show(row: dict[str, Any]) -> None:
            seen.append(title)
            made.deadline = -1e9  # long ago

        return nullcontext(show)

    made = Search(GRAPH, ALL, 3, "accuracy", Budget(minutes=1e4), None, members, None, watch, processes)
    made.run()
    assert seen[-1].startswith(("residual attention", "perceptron")) and len({*seen}) == 1
    assert sorted(made.left_out) == ["perceptron", "residual attention"]
    assert [one.member for one in made.trials] == ["label propagation"]
    _, spec, found = made.result(False, False)
    assert {row["name"] for row in spec["members"]} == {"label propagation"}
    assert set(found.left_out) == {"perceptron", "residual attention"}


def test_what_is_late_is_given_up_only_when_something_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
    made = searching(budget=Budget(minutes=1.0))
    made.deadline = 87.9
    made.give_up_if_late()
    made.trials = [SimpleNamespace()]  # type: ignore[list-item]
    made.give_up_if_late()  # it may have diverged
    made.judged["logistic"].merits[0] = 0.5
    with pytest.raises(module.Late):
        made.give_up_if_late()
    made.deadline = 88.1  # a fifth of the minute beyond
    made.give_up_if_late()
    made.deadline = None
    made.give_up_if_late()


@pytest.mark.parametrize("name", ["logistic", "smoothed logistic", "label propagation"])
def test_models_without_epochs_can_be_given_up_too(name: str) -> None:
    made = searching(budget=Budget(minutes=1.0))
    made.judged["boosting"].merits[0], made.deadline = 0.5, 0.0
    with pytest.raises(module.Late):
        made.work(made.job(BY_NAME[name], 0), None)


@pytest.mark.parametrize("name", ["logistic", "residual CAT, mf"])
def test_a_training_that_is_over_is_read_from_its_folder(name: str, tmp_path: Path) -> None:
    member = replace(BY_NAME[name], train={**BY_NAME[name].train, "epochs": 3})
    found = []
    for _ in range(2):
        made = searching([member], folder=tmp_path)
        found.append(made.work(made.job(member, 0), None))
        assert [path.name for path in tmp_path.iterdir()] == [
            f"{name.replace(', ', '-').replace(' ', '-')}-0"
        ]
    first, again = found
    assert np.array_equal(first.shares, again.shares) and first.settings == again.settings
    assert first.best_epoch == again.best_epoch and first.history == again.history
    assert (first.divides, sorted(first.state)) == (again.divides, sorted(again.state))


def test_who_is_told_to_stop_while_others_train_says_where() -> None:
    made: Any = searching(CLOSED)
    job = made.job(CLOSED[0], 0)
    made.workers = SimpleNamespace(done={}, rows={job: [{"epoch": 1}, {"epoch": 2}]}, idle=[])
    made.interrupt = SimpleNamespace(is_set=lambda: True)
    with pytest.raises(Interrupted, match=f"stopped in {CLOSED[0].name} after epoch 2"):
        made.outcome(job)
