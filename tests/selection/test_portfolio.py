"""The ensemble that is learnt by default: folds, what may not be seen, what must come out the same."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conjoint import learn
from conjoint.cli import main
from conjoint.errors import InputError, Interrupted
from conjoint.graph.graph import build_graph
from conjoint.graph.splits import Split, every_label
from conjoint.selection.folds import fold_splits, too_few
from conjoint.selection.members import MEMBERS, Budget, Facts, Member
from conjoint.selection.portfolio import read_portfolio
from conjoint.selection.search import Search
from small_ensemble import QUICK, learnt, made_graph


def test_every_label_is_held_out_once_and_classes_are_spread() -> None:
    graph, _ = made_graph()
    folds = fold_splits(graph, every_label(graph.y.numpy(), 0), 0)
    held = torch.cat([fold.val for fold in folds])
    assert len(folds) == 10 and torch.equal(held.sort().values, (graph.y >= 0).nonzero().squeeze(1))
    for fold in folds:
        assert not set(fold.val.tolist()) & set(fold.train.tolist())
        assert (
            graph.y[fold.val].bincount(minlength=3).max() - graph.y[fold.val].bincount(minlength=3).min() <= 1
        )
    again = fold_splits(graph, every_label(graph.y.numpy(), 0), 0)
    assert all(torch.equal(a.val, b.val) for a, b in zip(folds, again, strict=True))


def test_it_predicts_better_than_chance_and_its_estimate_is_of_unseen_nodes() -> None:
    graph, truth = made_graph()
    _, shares, found = learnt(graph, every_label(graph.y.numpy(), 0))
    assert (shares.argmax(dim=1).numpy() == truth)[-20:].mean() > 0.6
    assert found.folds == 10 and found.labels == 100 and 0.5 < found.estimate["accuracy"] <= 1.0
    assert sum(one["weight"] for one in found.members) == pytest.approx(1.0, abs=1e-3)


def test_what_the_search_asked_its_members_is_what_the_ensemble_says() -> None:
    graph, _ = made_graph()
    shares, found = learnt(graph, every_label(graph.y.numpy(), 0), members=QUICK)[1:]
    assert found.everywhere is not None and np.array_equal(found.everywhere, shares.numpy())
    assert "everywhere" not in found.to_dict()


def test_labels_of_test_nodes_change_no_bit() -> None:
    graph, _ = made_graph(hidden=0)
    split = graph.split("fraction", seed=0)
    scrambled = graph.y.clone()
    test = split.reveal_test()
    scrambled[test] = scrambled[test].roll(7)
    assert not torch.equal(scrambled, graph.y)
    first, second = (learnt(one, split)[1] for one in (graph, graph.changed(y=scrambled)))
    assert torch.equal(first, second)


def test_the_same_seed_and_trials_give_the_same_bits() -> None:
    graph, _ = made_graph()
    split = every_label(graph.y.numpy(), 0)
    (_, first, found), (_, second, again) = learnt(graph, split), learnt(graph, split)
    assert torch.equal(first, second) and found.members == again.members


def test_a_search_that_was_stopped_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = made_graph()
    split = every_label(graph.y.numpy(), 0)
    expected = learnt(graph, split)[1]
    attempts, attempt = 0, Search.attempt

    def stopped(search: Search, member: Member, fold: int) -> None:
        nonlocal attempts
        attempts += 1
        if attempts > 5:
            raise Interrupted("stopped after epoch 3", 3)
        attempt(search, member, fold)

    monkeypatch.setattr(Search, "attempt", stopped)
    found = learnt(graph, split, folder=tmp_path)[2]
    assert found.interrupted and len(found.trials) == 5  # what is finished is used
    monkeypatch.undo()
    assert torch.equal(learnt(graph, split, folder=tmp_path)[1], expected)


def test_single_keeps_one_member() -> None:
    graph, _ = made_graph()
    found = learnt(graph, every_label(graph.y.numpy(), 0), single=True)[2]
    assert sorted(one["weight"] for one in found.members)[-2:] == [0.0, 1.0]


@pytest.mark.parametrize("labels", [1, 2])
def test_a_class_with_one_or_two_labels(labels: int) -> None:
    graph, _ = made_graph()
    y = graph.y.clone()
    rare = (y == 2).nonzero().squeeze(1)
    y[rare[labels:]] = -1
    shares = learnt(graph.changed(y=y), every_label(y.numpy(), 0), members=QUICK, budget=Budget(trials=6))[1]
    assert bool(shares.isfinite().all())


def test_hardly_any_time_still_gives_an_answer() -> None:
    graph, _ = made_graph()
    found = learnt(graph, every_label(graph.y.numpy(), 0), budget=Budget(minutes=1e-6))[2]
    assert len(found.trials) >= 1 and found.left_out


def test_an_unknown_metric_is_one_line() -> None:
    graph, _ = made_graph()
    with pytest.raises(InputError, match="metric"):
        learnt(graph, every_label(graph.y.numpy(), 0), metric="luck")


def test_edge_weights_and_a_graph_without_features() -> None:
    graph, _ = made_graph()
    weighted = replace(graph, edge_weight=torch.full((graph.num_edges,), 2.0))
    assert bool(learnt(weighted, every_label(graph.y.numpy(), 0))[1].isfinite().all())
    bare = graph.changed(given_x=None).with_features(None)
    assert bare.num_features == 30 and any("spectral" in note for note in bare.notes)


def test_verbs_work_on_a_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, _ = made_graph()
    source, target = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].numpy()
    edges, nodes, run = tmp_path / "edges.csv", tmp_path / "nodes.csv", tmp_path / "run"
    edges.write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in zip(source, target, strict=True)))
    rows = [",".join([f"n{k}", "abc"[graph.y[k]] if graph.y[k] >= 0 else "", *map(str, graph.x[k].tolist())])
            for k in range(graph.num_nodes)]  # fmt: skip
    nodes.write_text("id,kind,f0,f1,f2,f3,f4,f5\n" + "\n".join(rows) + "\n")
    options = [
        "--edges",
        str(edges),
        "--nodes",
        str(nodes),
        "--label",
        "kind",
        "--trials",
        "6",
        "--epochs",
        "12",
    ]
    assert main(["train", *options, "--out", str(run), "--json", "--no-plots"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert row["model"] == "ensemble" and "test_accuracy" not in row and row["estimate"]["accuracy"] > 0.4
    assert read_portfolio(run / "portfolio.json").trials
    new, links = tmp_path / "new.csv", tmp_path / "links.csv"
    new.write_text("id,kind,f0,f1,f2,f3,f4,f5\nm0,,2,0,0,0,0,0\n")
    links.write_text("source,target\nm0,n1\nm0,n2\n")
    for verb in (
        ["predict", str(run), "--json"],
        ["predict", str(run), "--new-nodes", str(new), "--new-edges", str(links), "--json"],
        ["embed", str(run), "--out", str(tmp_path / "e.csv")],
        ["cluster", str(run), "--json"],
        ["plot", str(run), "--json"],
        ["train", "--resume", str(run), "--json", "--no-plots"],
    ):
        assert main(verb) == 0, verb
    learned = learn(str(edges), str(nodes), label="kind", trials=6, train={"epochs": 12})
    kept = (run / "predictions.csv").read_text().splitlines()
    assert [line.split(",")[3] for line in kept[1:]] == learned.predictions["predicted"].to_list()


def test_the_only_label_of_a_class_always_trains() -> None:
    graph = made_graph()[0]
    labels = graph.y.clone()
    labels[labels == 2] = -1
    labels[7] = 2
    splits = fold_splits(replace(graph, y=labels), every_label(labels.numpy(), 0), 0)
    assert len(splits) == 10 and all(7 in one.train and 7 not in one.val for one in splits)
    judged = torch.cat([one.val for one in splits])
    assert set(judged.tolist()) == set(torch.nonzero(labels >= 0).flatten().tolist()) - {7}
    assert too_few(np.array([0] * 9 + [1])) and not too_few(np.array([0] * 10 + [1]))


def test_ten_labels_are_the_fewest_that_are_held_out_from_each_other() -> None:
    assert [too_few(np.arange(count) % 2) for count in (9, 10, 11)] == [True, False, False]


def test_with_few_validation_nodes_training_nodes_judge_too() -> None:
    graph, order = made_graph()[0], torch.arange(400)
    splits = [Split(order[:60], order[60 : 60 + count], "given", 0) for count in (299, 300)]
    crossed, whole = (fold_splits(graph, split, 0) for split in splits)
    assert [one.val.numel() for one in crossed] == [299 + 6] * 10 and whole == [splits[1]]
    judged = torch.cat([one.val for one in crossed]).unique()
    assert torch.equal(judged, order[:359])
    for one in crossed:
        assert torch.equal(torch.cat([one.train, one.val]).sort().values, order[:359])


@pytest.mark.parametrize("most", [2, 3, 12])
def test_no_more_trainings_than_were_allowed(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """12: three first ones and the other nine folds of one member."""
    graph, done, attempt = made_graph()[0], list[str](), Search.attempt

    def counted(search: Search, member: Member, fold: int) -> None:
        done.append(member.name)
        attempt(search, member, fold)

    monkeypatch.setattr(Search, "attempt", counted)
    learnt(graph, every_label(graph.y.numpy(), 0), budget=Budget(trials=most))
    assert len(done) == most


@pytest.mark.parametrize(("labels", "folds"), [(1000, 10), (1001, 5), (5000, 5), (5001, 3)])
def test_the_number_of_folds_follows_the_number_of_labels(labels: int, folds: int) -> None:
    row = np.arange(labels - 1)
    graph = build_graph(row, row + 1, labels=np.arange(labels) % 2, name="a path", x=np.ones((labels, 1)))
    assert len(fold_splits(graph, every_label(graph.y.numpy(), 0), 0)) == folds


def test_a_training_is_never_thought_to_cost_nothing() -> None:
    small = Facts(nodes=20, entries=60, features=3, feature_entries=60, classes=2, labels=10)
    large = Facts(
        nodes=20_000, entries=600_000, features=300, feature_entries=6_000_000, classes=2, labels=9000
    )
    for member in MEMBERS:
        assert 0.0 < member.seconds(small) < member.seconds(large)
