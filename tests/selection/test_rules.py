"""Rules of choosing, tuning, weighing and settling, each at its boundary and with trainings made up."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from conjoint.errors import InputError
from conjoint.graph.graph import as_graph
from conjoint.selection import choose, diagnosis, learner, portfolio, tune, weighing
from conjoint.selection.choose import Contest, Trial
from conjoint.selection.diagnosis import Diagnosis, Evidence, Interval, advice, auc, share
from conjoint.selection.members import MEMBERS
from conjoint.selection.setting import make_setting
from conjoint.training import Fitted, TrainConfig, load_run, predict_proba, start_run
from conjoint.training.closed_form import CLOSED_FORMS
from conjoint.training.memory import Way
from small_training import small_data, small_model, small_split

GRAPH, SPLIT = as_graph(small_data()), small_split()


def noting(calls: list[Any], answer: Any = None) -> Any:
    """A function that notes how it is called."""

    def note(*args: Any, **options: Any) -> Any:
        calls.append((args, options))
        return answer(*args, **options) if callable(answer) else answer

    return note


def trial(model: str, accuracy: float, loss: float = 1.0, short: bool = True, seed: int = 0) -> Trial:
    return Trial(model, seed, accuracy, loss, 5, short)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_after_each_round_the_better_half_goes_on(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names, tried = [f"m{k}" for k in range(count)], list[tuple[str, int, bool]]()

    def train(name: str, graph: Any, split: Any, config: TrainConfig, *_: Any) -> Fitted:
        tried.append((name, config.seed, config.epochs == 200))
        row = {"val_accuracy": 0.5 + int(name[1:]) / 100, "val_loss": 1.0}
        return Fitted(small_model(), config, [row], 1, "epochs")

    monkeypatch.setattr(choose, "train_candidate", train)
    monkeypatch.setattr(choose, "candidates_of", lambda _: names)
    monkeypatch.setattr(choose, "diagnose", lambda *_, **__: None)
    monkeypatch.setattr(choose, "shortlist", lambda _: [])
    found = choose.choose_intervention(GRAPH, SPLIT, TrainConfig(seed=4))
    half = names[::-1][: (count + 1) // 2]
    quarter = half[: (len(half) + 1) // 2]
    expected = [(name, 4, True) for name in names] + [(name, 5, True) for name in half]
    expected += [(name, seed, False) for name in quarter for seed in (4, 5)]
    assert tried == expected and found.model == names[-1] and found.candidates == tuple(names)
    assert sorted(found.fitted) == [4, 5]
    again = choose.choose_intervention(GRAPH, SPLIT, TrainConfig(seed=4), known=found.trials)
    assert len(tried) == len(expected) and again.trials == found.trials and again.model == found.model


@pytest.mark.parametrize(
    ("patience", "epochs", "expected"), [(0, 1500, (200, 50)), (20, 1500, (200, 20)), (99, 30, (30, 50))]
)
def test_short_trainings_are_short(
    patience: int, epochs: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TrainConfig] = []

    def train(name: str, graph: Any, split: Any, config: TrainConfig, *_: Any) -> Fitted:
        seen.append(config)
        row = {"val_accuracy": 0.5, "val_loss": 1.5}
        return Fitted(small_model(), config, [row] * 3, 2, "epochs")

    monkeypatch.setattr(choose, "train_candidate", train)
    told: list[Trial] = []
    contest = Contest(GRAPH, SPLIT, TrainConfig(patience=patience, epochs=epochs), None, told.append, None)
    contest.attempt("a", 6, short=True)
    contest.attempt("a", 7)
    assert (seen[0].epochs, seen[0].patience, seen[0].seed) == (*expected, 6)
    assert (seen[1].epochs, seen[1].patience, seen[1].seed) == (epochs, patience, 7)
    assert told == contest.trials == [Trial("a", 6, 0.5, 1.5, 3, True), Trial("a", 7, 0.5, 1.5, 3, False)]
    assert list(contest.fitted) == [("a", 7)] and contest.fitted["a", 7][1] < 60.0


def test_the_order_of_candidates_is_by_accuracy_and_then_loss() -> None:
    contest = Contest(GRAPH, SPLIT, TrainConfig(), {}, None, None)
    contest.trials = [
        trial("a", 0.5), trial("b", 0.7, 2.0), trial("c", 0.7, 1.0), trial("c", 0.1, 9.0, seed=1),
        trial("c", 0.7, 1.0, False), trial("c", 0.9, 3.0, False, 1),
    ]  # fmt: skip
    assert contest.best_first(["a", "b", "c"]) == ["c", "b", "a"]
    found = contest.choice("c", ["a", "b", "c"])
    assert found.standing("c") == (4, pytest.approx(0.8), 2.0) and found.standing("b") == (1, 0.7, 2.0)
    assert found.diagnosis is None and found.to_dict().keys() >= {"model", "candidates", "trials"}


def test_what_a_trial_is_worth_to_the_sampler() -> None:
    one = tune.Tried({}, 0.5, 2.0, 1.0)
    assert tune._worth(one) == pytest.approx(0.5 - 2e-4)
    assert tune._worth(replace(one, val_loss=1e30)) == pytest.approx(0.5 - 1e-2)
    assert one.merit == (0.5, -2.0)


def test_a_trial_is_the_mean_over_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fit(model: Any, graph: Any, split: Any, config: TrainConfig, progress: Any) -> Any:
        seen.append((model, config))
        progress({})
        return SimpleNamespace(metrics={"val_accuracy": config.seed / 10, "val_loss": float(config.seed)})

    monkeypatch.setattr(tune, "fit", fit)
    monkeypatch.setattr(tune, "network", lambda name, graph, seed, chosen: (name, seed, chosen))
    clock = iter([0.0, 1.0, 2.0, 3.5])
    monkeypatch.setattr(tune.time, "monotonic", lambda: next(clock))
    point = {**tune.RECOMMENDED, "ramp": 0, "lr": 0.03}
    base, budget = TrainConfig(seed=4), tune.Budget(seeds=2, epochs=9, patience=3)
    found = tune._judge(point, GRAPH, SPLIT, base, budget, 2.0)
    assert (found.val_accuracy, found.val_loss, found.seconds) == (pytest.approx(0.45), 4.5, 3.5)
    assert found.point == point and found.point is not point
    assert [model[:2] for model, _ in seen] == [("spread-trust", 4), ("spread-trust", 5)]
    assert seen[0][0][2] == {"hidden": 32, "dropout": 0.5}
    assert {(c.epochs, c.patience, c.lr, c.consistency.passes) for _, c in seen} == {
        (9, 3, 0.03, point["passes"])
    }
    late = iter([0.0, 2.1])
    monkeypatch.setattr(tune.time, "monotonic", lambda: next(late))
    with pytest.raises(tune._TimeIsUp):
        tune._judge(point, GRAPH, SPLIT, base, budget, 2.0)


def test_a_search_tells_of_each_trial_and_keeps_to_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, told = list[Any](), list[Any]()

    def judge(point: Any, graph: Any, split: Any, base: Any, budget: Any, deadline: float) -> tune.Tried:
        points.append(point)
        if len(points) == 4:
            raise tune._TimeIsUp
        return tune.Tried(dict(point), 0.5, 1.0, 2.0)

    monkeypatch.setattr(tune, "_judge", judge)
    found = tune.tune(GRAPH, SPLIT, tmp_path, budget=tune.Budget(trials=2), on_trial=told.append)
    assert found == told == tune.read_trials(tmp_path) and len(found) == 2
    assert points[0] == tune.RECOMMENDED
    longer = tune.tune(GRAPH, SPLIT, tmp_path, budget=tune.Budget(trials=9), models=["gat"])
    assert longer[:2] == found and len(longer) == 3 and points[2]["model"] == "gat"
    (tmp_path / "other").mkdir()
    tune.tune(GRAPH, SPLIT, tmp_path / "other", budget=tune.Budget(trials=1), models=["gat"])
    assert points[-1]["model"] == "gat"


@pytest.mark.parametrize("name", ["val_accuracy", "val_loss", "seconds"])
def test_a_trial_has_finite_numbers(name: str, tmp_path: Path) -> None:
    line = {"point": {**tune.RECOMMENDED, "ramp": 0}, "val_accuracy": 0.5, "val_loss": 1, "seconds": 1.5}
    (tmp_path / tune.FILE).write_text(
        json.dumps(line) + "\n" + json.dumps({**line, name: float("nan")}) + "\n"
    )
    with pytest.raises(InputError, match="line 2: not a trial"):
        tune.read_trials(tmp_path)
    (tmp_path / tune.FILE).write_text(json.dumps(line) + "\n")
    assert tune.read_trials(tmp_path)[0].seconds == 1.5


RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)


def sure(right: np.ndarray[Any, Any], p: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Shares with p on one class and the rest on the others."""
    return np.where(np.eye(3)[right] > 0, p[:, None], (1 - p[:, None]) / 2)


def test_log_loss_guides_where_accuracy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(weighing, "_greedy", noting(asked, weighing._greedy))
    shares = [sure(Y, RNG.uniform(0.2, 0.9, 90)) for _ in range(2)]
    for metric in ("accuracy", "macro-f1"):
        weighing.weigh(shares, Y, metric)
    guides = [args[2] for args, _ in asked]
    assert guides == ["log-loss"] * weighing.SAMPLES + ["macro-f1"] * weighing.SAMPLES


def test_an_ensemble_that_is_as_good_as_its_best_member_stays_one() -> None:
    """All are always right: none is ahead in accuracy, and both are surer on some nodes."""
    p = RNG.uniform(0.5, 0.99, 90)
    weights = weighing.weigh([sure(Y, p), sure(Y, 1.49 - p)], Y)
    assert weights.min() > 0.0 and weights.sum() == pytest.approx(1.0)


def test_greedy_picks_against_a_plain_loop() -> None:
    shares = np.stack(
        [sure(np.where(RNG.random(90) < 0.7, Y, (Y + k) % 3), np.full(90, 0.8)) for k in (1, 2, 1)]
    )
    found, chosen, best = weighing._greedy(shares, Y, "log-loss"), list[int](), np.inf
    for _ in range(weighing.PICKS):
        losses = [-np.log(shares[[*chosen, k]].mean(axis=0)[np.arange(90), Y]).mean() for k in range(3)]
        if min(losses) >= best - 1e-12:
            break
        best = min(losses)
        chosen.append(int(np.argmin(losses)))
    assert found.tolist() == np.bincount(chosen, minlength=3).tolist() and len(chosen) > 2


def test_weights_are_the_mean_of_choices_on_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    picks = iter([[12.0, 0.0, 0.0], [5.0, 6.0, 1.0]] * 10)
    monkeypatch.setattr(weighing, "_greedy", lambda *_: np.array(next(picks)))
    p = RNG.uniform(0.5, 0.99, 90)
    shares = [sure(Y, p)] * 3
    assert weighing.weigh(shares, Y) == pytest.approx([17 / 24, 6 / 24, 1 / 24])
    picks = iter([[12.0, 0.0, 0.0], [11.7, 6.0, 0.3]] * 10)  # 1 % is left out
    assert weighing.weigh(shares, Y) == pytest.approx([23.7 / 29.7, 6 / 29.7, 0.0])


def test_the_seed_draws_the_samples() -> None:
    shares = [sure(np.where(RNG.random(90) < 0.7, Y, (Y + k) % 3), np.full(90, 0.8)) for k in (1, 2, 1)]
    assert not np.array_equal(weighing.weigh(shares, Y, seed=1), weighing.weigh(shares, Y, seed=2))
    assert np.array_equal(weighing.weigh(shares, Y), weighing.weigh(shares, Y, "accuracy", 0))


def found(**changed: Any) -> Diagnosis:
    known = Evidence("smooth", "about", Interval(0.7, 0.6, 0.8))
    plain = Diagnosis(9, 8, {}, 5, 40, Interval(0.75, 0.6, 0.85), 0.5, 0.1, (known,))
    return replace(plain, **changed)


def test_advice_word_by_word() -> None:
    assert advice(found()) == [
        "30 of 40 edges between labelled nodes join one class (75%, by chance 50%).",
        "About 10% of the edges join nodes no more alike than random pairs: most edges look meant.",
        "Try cat-i-smooth: its score ranks same-class edges first (AUC 0.70); or let validation choose: "
        "--intervention auto.",
    ]
    few = [found(labelled_edges=12), found(labelled_edges=40, homophily=Interval(0.2, 0.1, 0.7))]
    assert [advice(one)[0].endswith("; too few to be sure of much.") for one in few] == [True, True]
    just = found(labelled_edges=20, homophily=Interval(0.5, 0.4, 0.7))
    assert "too few" not in advice(just)[0] and len(advice(found(random_edges=None))) == 2
    assert "looks noisy" in advice(found(random_edges=0.25))[1]
    assert "looks noisy" not in advice(found(random_edges=0.249))[1]
    assert advice(found(random_edges=0.25))[2].startswith("Try cat-e-smooth")
    assert "Edges say little" in advice(found(homophily=Interval(0.5, 0.4, 0.599)))[-1]
    assert "Edges say little" not in advice(found(homophily=Interval(0.5, 0.4, 0.6)))[-1]
    two = found(evidence=(found().evidence[0], Evidence("trust", "about", Interval(0.6, 0.55, 0.7))))
    assert "Try cat-i-smooth" in advice(two)[-1] and "(AUC 0.70)" in advice(two)[-1]
    unsure = found(evidence=(Evidence("mf", "about", Interval(0.6, 0.55, 0.7)), Evidence("a", "b", None)))
    assert advice(unsure)[-1].startswith("No score is certain to know the classes: let")
    noisy = replace(unsure, random_edges=0.25, homophily=None)
    assert (
        "many edges look random" in advice(noisy)[-1]
        and "many edges" not in advice(replace(noisy, random_edges=None))[-1]
    )


@pytest.mark.parametrize(("ups", "downs"), [(3, 5), (6, 2), (40, 60)])
def test_the_interval_of_an_auc_by_hand(ups: int, downs: int) -> None:
    """Hanley and McNeil's variance on the logit scale, written out."""
    scores = np.random.default_rng(ups).normal(size=ups + downs).round(1)
    positive = np.arange(ups + downs) < ups
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[positive] for b in scores[~positive]]
    value, few = float(np.mean(pairs)), min(ups, downs)
    a = (value * few + 0.5) / (few + 1)
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    error = np.sqrt((a * (1 - a) + (ups - 1) * (q1 - a * a) + (downs - 1) * (q2 - a * a)) / (ups * downs))
    middle, half = np.log(a / (1 - a)), 1.96 * error / (a * (1 - a))
    ends = [1 / (1 + np.exp(-(middle - half))), 1 / (1 + np.exp(-(middle + half)))]
    got = auc(scores, positive)
    assert got is not None
    assert (got.value, got.low, got.high) == pytest.approx((value, min(ends[0], value), max(ends[1], value)))


def test_shares_of_all_and_of_none_stay_within_their_bounds() -> None:
    none, every = share(0, 5), share(5, 5)
    assert none is not None and every is not None
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    assert none.high == pytest.approx(1.96**2 / (5 + 1.96**2)) == 1.0 - every.low


def test_a_diagnosis_counts_the_graph() -> None:
    got = diagnosis.diagnose(GRAPH, SPLIT.train, interventions=["random", "smooth"], seed=1)
    pairs = {(min(i, j), max(i, j)) for i, j in GRAPH.edge_index.t().tolist() if i != j}
    degree = np.bincount(np.array(list(pairs)).ravel(), minlength=60)
    known = set(SPLIT.train.tolist())
    judged = [(i, j) for i, j in pairs if i in known and j in known]
    assert (got.nodes, got.edges, got.labelled_nodes, got.labelled_edges) == (60, len(pairs), 12, len(judged))
    assert got.degree == {
        "mean": degree.mean(),
        "median": np.median(degree),
        "most": degree.max(),
        "without": (degree == 0).mean(),
    }
    shares = np.bincount(GRAPH.y[SPLIT.train].numpy()) / 12
    assert got.by_chance == pytest.approx((shares**2).sum())
    alone = diagnosis.diagnose(
        GRAPH.changed(edges=torch.zeros(2, 0, dtype=torch.long)), SPLIT.train, interventions=[]
    )
    triangle = Data(x=torch.eye(3), y=torch.arange(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    pair = Data(x=torch.eye(2), y=torch.arange(2), edge_index=torch.tensor([[0], [1]]))
    for data, told in ((triangle, True), (pair, False)):  # two nodes make no random pair beside their edge
        one = diagnosis.diagnose(as_graph(data), torch.arange(2), interventions=[])
        assert (one.random_edges is not None) is told
    assert alone.random_edges is None and alone.degree["without"] == 1.0


def test_where_random_edges_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(diagnosis, "reduced_features", noting(asked, GRAPH.x))
    monkeypatch.setattr(diagnosis.decoys, "compare", noting(asked, (1, 2)))
    monkeypatch.setattr(diagnosis.decoys, "noise_share", lambda a, b: (a, b))
    assert diagnosis._random_edges(GRAPH.x, GRAPH.adjacency, 5) == (1, 2)
    assert [options for _, options in asked] == [
        {"rank": 64, "seed": 5, "centre": True},
        {"hops": 2, "seed": 5},
    ]


@pytest.mark.parametrize(
    ("nodes", "shares"),
    [
        (np.arange(3, dtype=np.int32), np.ones((3, 2), np.float32)),
        (np.arange(3), np.ones((3, 2))),
        (np.arange(4).reshape(2, 2), np.ones((2, 2), np.float32)),
        (np.arange(3), np.ones(3, np.float32)),
        (np.arange(3), np.ones((4, 2), np.float32)),
        (np.arange(0), np.ones((0, 2), np.float32)),
        (np.arange(3) - 1, np.ones((3, 2), np.float32)),
        (np.arange(3), np.full((3, 2), np.nan, np.float32)),
        (np.arange(3), np.full((3, 2), -1e-9, np.float32)),
    ],
)
def test_damaged_judged_nodes_are_refused(nodes: Any, shares: Any, tmp_path: Path) -> None:
    path = tmp_path / portfolio.JUDGED
    path.write_bytes(portfolio.encode_arrays({"nodes": nodes, "probabilities": shares}))
    with pytest.raises(InputError, match="not what a training wrote"):
        portfolio.read_judged(path)
    path.write_bytes(portfolio.encode_judged((np.array([0, 4]), np.array([[0.0, 1.0], [0.5, 0.5]]))))
    kept = portfolio.read_judged(path)
    assert kept is not None and kept[0].tolist() == [0, 4] and kept[1].tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert portfolio.read_judged(tmp_path / "none") is None


BY_NAME = {member.name: member for member in MEMBERS}


def test_what_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(learner, "full_memory", noting(asked, 800))
    monkeypatch.setattr(learner, "available_memory", lambda: 1000)
    small, few = BY_NAME["residual CAT, mf"], BY_NAME["random propagation, trust"]
    assert learner.fits(small, GRAPH) and learner.fits(few, GRAPH)
    assert [args[0] for args, _ in asked] == ["rescat-i-mf", "spread-trust"]
    assert [args[3] for args, _ in asked] == [1, few.train["consistency"]["passes"]]
    assert asked[0][0][2] is GRAPH
    monkeypatch.setattr(learner, "available_memory", lambda: 999)
    assert not learner.fits(small, GRAPH) and learner.fits(BY_NAME["logistic"], GRAPH)


@pytest.mark.parametrize(
    ("kind", "must", "train", "batch"),
    [
        ("full", False, {}, {}),
        ("field", False, {}, {}),
        ("field", True, {"field": "receptive"}, {}),
        ("full", True, {}, {}),
        ("clusters", True, {}, {"kind": "clusters"}),
        ("neighbours", True, {}, {"kind": "neighbours"}),
    ],
)
def test_what_memory_decides(
    kind: str, must: bool, train: dict[str, Any], batch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    way = Way(kind, 1, 2, "so", must)
    monkeypatch.setattr(learner, "choose_way", noting(asked, way))
    setting = make_setting("gat", settings={"hidden": 4}, batch={"kind": "auto"})
    settled, told = learner.settle(setting, GRAPH, SPLIT)
    assert (settled.train, settled.batch, told) == (train, batch, str(way))
    (model, settings, graph, of_train, of_val), options = asked[0]
    assert (model, settings, graph, options) == ("gat", {"hidden": 4}, GRAPH, {"consistency": None})
    assert (of_train == SPLIT.train.numpy()).all() and (of_val == SPLIT.val.numpy()).all()
    for given in ({"field": "whole"}, {"field": "receptive"}):
        asked.clear()
        fixed = make_setting("gat", train=given, batch={"kind": "auto"})
        assert learner.settle(fixed, GRAPH, SPLIT) == (replace(fixed, batch={}), None) and not asked
    weighted = replace(GRAPH, edge_weight=torch.ones(GRAPH.num_edges))
    assert learner.settle(setting, weighted, SPLIT) == (replace(setting, batch={}), None) and not asked
    for name, field in (("full", "whole"), ("field", "receptive")):
        named, told = learner.settle(make_setting("gat", batch={"kind": name}), GRAPH, SPLIT)
        assert (named.train, named.batch, told) == ({"field": field}, {}, None)
    batches = make_setting("gat", batch={"kind": "clusters", "size": 9})
    assert learner.settle(batches, GRAPH, SPLIT) == (batches, None)


def test_a_training_that_was_done_while_choosing_is_not_done_again() -> None:
    setting, config = make_setting("gat", settings={"hidden": 3}), TrainConfig(seed=5)
    fitted = Fitted(small_model(), config, [{"epoch": 1, "val_loss": 1.0}], 1, "epochs")
    choice = choose.Choice("gat", ("gat",), (), None, {5: (fitted, 2.5)})
    done = learner.train_one(setting, GRAPH, SPLIT, 5, choice=choice)
    assert done.fitted is fitted and done.seconds == 2.5 and done.batch is None and done.portfolio is None
    assert done.spec is not None and done.spec == learner.spec_of(setting, GRAPH)
    assert (done.spec.name, done.spec.features, done.spec.classes, done.spec.num_nodes) == ("gat", 12, 3, 60)
    assert done.spec.settings == {"hidden": 3} and done.split is SPLIT and done.graph is GRAPH


def test_progress_is_printed_every_tenth_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    show = learner._printing(noting(seen, lambda row: row["epoch"] == 20), 10)
    assert [show({"epoch": k, "loss": 1 / 3}) for k in (9, 10, 11, 20)] == [False, False, False, True]
    assert capsys.readouterr().out == "epoch 10, loss 0.3333\nepoch 20, loss 0.3333\n" and len(seen) == 4
    assert learner._printing(None, 1)({"epoch": 3}) is None and learner.watching(None) is None
    rows: list[Any] = []
    watch = learner.watching(rows.append)
    assert watch is not None
    with watch("title", 9) as told:
        assert told is not None
        told({"epoch": 1})
    assert rows[-1] == {"training": "title", "epoch": 1}


def test_what_was_asked_of_the_search() -> None:
    assert learner.search_options(None, None, None, False) == {}
    assert learner.search_options("f1", 0.5, 3, True) == {
        "metric": "f1", "minutes": 0.5, "trials": 3, "single": True
    }  # fmt: skip
    assert learner.split_options("all") == {"name": "all"} and learner.split_options(None) == {}
    assert learner.split_options({"train": 0.5}) == {"train": 0.5}


def test_a_new_split_for_each_seed_where_asked_for() -> None:
    options = {"name": "fraction", "train": 0.4, "val": 0.3}
    one, two = (learner.split_of(GRAPH, {**options, "resplit": True}, seed) for seed in (1, 2))
    assert not torch.equal(one.train, two.train)
    assert torch.equal(one.train, GRAPH.split("fraction", train=0.4, val=0.3, seed=1).train)
    same = [learner.split_of(GRAPH, {**options, "resplit": False}, seed).train for seed in (1, 2)]
    assert torch.equal(*same)
    assert learner.split_of(GRAPH, {"train": 0.4, "val": 0.3}, 0).name == one.name


@pytest.mark.parametrize(("ahead", "alone"), [(17, False), (18, True), (20, True)])
def test_one_member_alone_where_it_is_ahead_in_nine_of_ten_samples(
    ahead: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merits are asked for each member, then twice for each sample: of the best, and of all joined."""
    pairs = [value for k in range(weighing.SAMPLES) for value in (1.0, 0.0 if k < ahead else 2.0)]
    merits = iter([0.1, 0.9, *pairs])
    monkeypatch.setattr(weighing, "merit", lambda *_: next(merits))
    monkeypatch.setattr(weighing, "_greedy", lambda *_: np.array([6.0, 6.0]))
    found = weighing.weigh([sure(Y, np.full(90, 0.8))] * 2, Y)
    assert found.tolist() == ([0.0, 1.0] if alone else [0.5, 0.5])


@dataclass(frozen=True)
class Side:
    model: Any = None


def test_a_result_that_is_no_number_is_not_written() -> None:
    written: list[Any] = []
    run: Any = SimpleNamespace(sidecar=Side(), write=noting(written), keep=noting(written))
    fitted = Fitted(small_model(), TrainConfig(), [{"epoch": 1, "val_loss": 1.0}], 1, "epochs")
    spec = learner.spec_of(make_setting("gat"), GRAPH)
    made = portfolio.Portfolio("accuracy", 1, 1, (), (), {"accuracy": 0.5}, judged=(np.arange(2), np.eye(2)))
    learner.keep_training(run, learner.Trained(fitted, GRAPH, SPLIT, 1.0, None, made, spec))
    names = [args[0] for args, _ in written]
    assert names[:2] == [learner.PORTFOLIO, portfolio.JUDGED] and len(written) == 3
    assert written[0][0][1].startswith(b'{\n "')
    assert json.loads(written[0][0][1]) == json.loads(json.dumps(made.to_dict()))
    assert run.sidecar.model is spec and written[0][0][1].endswith(b"}\n")
    broken = replace(made, estimate={"accuracy": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        learner.keep_training(run, learner.Trained(fitted, GRAPH, SPLIT, 1.0, None, broken, spec))
    assert len(written) == 3


def test_the_space_that_is_searched() -> None:
    space: Any = tune.distributions()
    ranges = {name: (one.low, one.high) for name, one in space.items() if hasattr(one, "low")}
    assert ranges == {
        "dropout": (0.2, 0.8), "lr": (0.002, 0.1), "weight_decay": (1e-5, 5e-3), "weight": (0.3, 5.0),
        "temperature": (0.3, 0.7),
    }  # fmt: skip
    assert {name: one.choices for name, one in space.items() if hasattr(one, "choices")} == {
        "model": tune.MODELS, "hidden": (8, 16, 32), "consistent": (True, False), "passes": (2, 4),
        "ramp": (0, 50),
    }  # fmt: skip
    assert {name for name, one in space.items() if getattr(one, "log", False)} == {
        "lr",
        "weight_decay",
        "weight",
    }
    assert space["dropout"].step == 0.1 and tune.distributions(["gat"])["model"].choices == ("gat",)  # type: ignore[attr-defined]


def test_a_graph_is_trained_with_each_seed_on_its_split(capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"name": "fraction", "train": 0.4, "val": 0.3, "resplit": True}
    rows: list[Any] = []
    parts: dict[str, Any] = {"settings": {"hidden": 3}, "train": {"epochs": 2}, "progress": rows.append}
    made = learner.train_graph(GRAPH, split=options, seed=4, seeds=2, model="gcn", verbose=2, **parts)
    splits = [learner.split_of(GRAPH, options, seed) for seed in (4, 5)]
    assert [one.fitted.config.seed for one in made.trained] == [4, 5] and len(rows) == 4
    assert all(
        torch.equal(one.split.train, split.train) for one, split in zip(made.trained, splits, strict=True)
    )
    losses = [one.fitted.metrics["val_loss"] for one in made.trained]
    assert made.best is made.trained[int(np.argmin(losses))] and made.choice is None
    assert made.embedding.shape == (60, 3) and capsys.readouterr().out.count("epoch ") == 4
    one = made.trained[0]
    assert one.probabilities.shape == (60, 3) and np.allclose(one.probabilities.sum(1), 1.0, atol=1e-5)
    [(nodes, shares)] = list(one.pieces())
    assert nodes.tolist() == list(range(60)) and shares is one.probabilities
    row = one.row()
    assert row["parameters"] == 12 * 3 + 3 + 3 * 3 + 3 and row["seconds"] == round(one.seconds, 3)
    assert set(row["classes"]) == {"test"} == set(row["majority"]) and "batch" not in row
    columns = one.columns(nodes, shares)
    assert len(columns["predicted"]) == 60 and set(columns["predicted"]) <= {"a", "b", "c"}
    quiet = learner.train_graph(GRAPH, split=SPLIT, model="gcn", train={"epochs": 1})
    assert quiet.trained[0].split is SPLIT and capsys.readouterr().out == ""


def test_the_sampler_is_told_what_each_trial_was_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    study = tune._study([], 3)
    monkeypatch.setattr(study, "tell", noting(told, study.tell))
    monkeypatch.setattr(tune, "_study", lambda trials, seed: study)
    results = iter([(0.5, 2.0), (0.75, 1.0)])
    monkeypatch.setattr(tune, "_judge", lambda point, *_: tune.Tried(dict(point), *next(results), 1.0))
    tune.tune(GRAPH, SPLIT, tmp_path, budget=tune.Budget(trials=2))
    assert [args[1] for args, _ in told] == pytest.approx([0.5 - 2e-4, 0.75 - 1e-4])
    assert [one.value for one in study.trials] == [args[1] for args, _ in told]


def test_what_a_search_may_cost() -> None:
    assert tune.Budget() == tune.Budget(10.0, 1000, 2, 300, 50)
    assert tune.RECOMMENDED["model"] == tune.MODELS[0] and tune.RECOMMENDED["consistent"] is True


def test_members_are_left_out_aloud_where_memory_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, graph = make_setting(None, search={"trials": 1}), GRAPH
    for most, left in ((2**60, 0), (0, sum(one.kind == "network" for one in MEMBERS))):
        told: list[str] = []
        monkeypatch.setattr(learner, "available_memory", lambda most=most: most)
        learner.train_ensemble(setting, graph, SPLIT, 0, tell=told.append, aside=False)
        large = [line for line in told if "memory would not suffice" in line]
        assert len(large) == (left > 0)
        assert not large or len(large[0].split("; ")) == left


@pytest.mark.parametrize("aside", [True, False])
def test_members_are_trained_side_by_side_unless_each_epoch_is_watched(
    aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who may end a training by what it says must be asked by this process."""
    asked: list[Any] = []

    def learn(*args: Any, **options: Any) -> Any:
        asked.append(options["processes"])
        raise InputError("far enough")

    monkeypatch.setattr(learner, "learn_ensemble", learn)
    monkeypatch.setattr(learner, "at_a_time", lambda members, graph: 5)
    setting = make_setting(None, search={"trials": 1})
    with pytest.raises(InputError, match="far enough"):
        learner.train_ensemble(setting, GRAPH, SPLIT, 0, aside=aside)
    with pytest.raises(InputError, match="far enough"):
        learner.train_graph(GRAPH, split=SPLIT, trials=1, progress=None if aside else lambda row: None)
    assert asked == [5 if aside else 1] * 2


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_a_closed_form_predicts_from_its_folder_what_it_predicted(name: str, tmp_path: Path) -> None:
    """By its name alone; on features that other networks divide by their sums."""
    assert GRAPH.normalises("auto")
    setting = make_setting(name)
    path, spec = tmp_path / "run", learner.spec_of(setting, GRAPH)
    run = start_run(path, setting.config(0), model=spec, data=GRAPH, split=SPLIT)
    fitted = learner.train_one(setting, GRAPH, SPLIT, 0, run=run).fitted
    model, again = load_run(path)
    shares = predict_proba(fitted.model, GRAPH, fitted.config)
    assert torch.equal(predict_proba(model, GRAPH, again.config), shares)
    assert again.config.row_normalise == "never" == fitted.config.row_normalise
    assert make_setting("gcn").config(0).row_normalise == "auto"


def test_epochs_are_printed_of_a_network_and_of_members_only_if_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every tenth at first; of an ensemble a line for each training."""
    learner.train_graph(GRAPH, split=SPLIT, model="gcn", train={"epochs": 20, "patience": 0}, verbose=1)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["epoch 10", "epoch 20"]
    members = [one for one in MEMBERS if one.name == "residual attention"]
    for verbose in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learner, "members_of", lambda *_: members)
            options: dict[str, Any] = {"train": {"epochs": 3}, "trials": 1, "verbose": verbose}
            learner.train_graph(GRAPH, split=SPLIT, **options)
        told = capsys.readouterr().out
        assert "residual attention, " in told and ("epoch 1" in told) is (verbose == 2)


def test_a_search_that_was_kept_without_saying_so_was_not_interrupted(tmp_path: Path) -> None:
    kept = {"metric": "accuracy", "folds": 3, "labels": 12, "trials": [], "members": [], "estimate": {}}
    path = tmp_path / "portfolio.json"
    for more, interrupted in (({}, False), ({"interrupted": True}, True)):
        path.write_text(json.dumps({**kept, "left_out": [], **more}))
        found = portfolio.read_portfolio(path)
        assert found.interrupted is interrupted and found.judged is None
