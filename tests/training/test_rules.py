"""Small rules of training one by one: sums of gradients, weights of labels, run folders, closed forms."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from conjoint.errors import Diverged, InputError
from conjoint.graph.adjacency import Adjacency
from conjoint.graph.graph import as_graph
from conjoint.graph.splits import Split
from conjoint.nn.interventions import SelfExpression
from conjoint.nn.simple import ABSENT, LabelPropagation
from conjoint.nn.zoo import build
from conjoint.training import (
    BatchConfig,
    Consistency,
    TrainConfig,
    closed_form,
    evaluate,
    fit,
    loop,
    ranks,
    runs,
)
from conjoint.training.batch_steps import BatchSteps
from conjoint.training.batches import batch_count, clusters, metis_bytes
from conjoint.training.config import SCHEDULES
from conjoint.training.loss import class_factors, disagreement, label_weights, must_be_finite
from conjoint.training.memory import Network, Sizes, batch_memory, choose_way, full_memory, training_memory
from conjoint.training.metrics import METRICS, all_metrics, average_precision, majority_metrics, roc_auc
from conjoint.training.penalty import PenaltySample, estimate
from conjoint.training.predictions import prediction_columns, table_in_pieces
from conjoint.training.ranks import GradientSums, Ranks, averaged_statistics
from conjoint.training.runs import Run, as_started, resume_run, start_run
from conjoint.training.steps import Batch, part_of, whole_graph, with_unlabelled
from scale_runs import graph_and_split
from small_training import SPEC, small_data, small_model, small_split

GRAPH, SPLIT = as_graph(small_data()), small_split()
CONFIG = TrainConfig(epochs=3, patience=0)


class Joined:
    """Two processes in one: what the other of them has is given beforehand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Any] = []
        monkeypatch.setattr(ranks.dist, "all_gather", self.all_gather)
        monkeypatch.setattr(ranks.dist, "all_reduce", self.all_reduce)
        monkeypatch.setattr(ranks.dist, "all_to_all_single", self.all_to_all)
        monkeypatch.setattr(ranks.dist, "broadcast", self.broadcast)

    def all_gather(self, found: list[Any], mine: Any) -> None:
        found[0].copy_(mine)
        found[1].copy_(10 * mine)

    def all_reduce(self, values: Any, async_op: bool = False) -> Any:
        values += 1.0
        done = SimpleNamespace(value=lambda: [values])
        return SimpleNamespace(get_future=lambda: SimpleNamespace(then=lambda after: after(done)))

    def all_to_all(self, out: Any, given: Any, got: list[int], counts: list[int]) -> None:
        self.sent.append((given.tolist(), got, counts))
        out.fill_(7)

    def broadcast(self, tensor: Any, src: int) -> None:
        tensor += 100 * (src + 1)


def test_what_two_processes_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    joined, first = Joined(monkeypatch), Ranks(0, 2)
    assert first.gather([1.0, 2.0]) == [[1.0, 2.0], [10.0, 20.0]]
    assert first.any_of(True) and not first.any_of(False)
    assert first.mean(torch.tensor([3.0])).tolist() == [2.0]
    rows, values = torch.tensor([4, 5, 6]), torch.tensor([[1.0], [2.0], [3.0]])
    ids, found = first.send_to_owners(rows, values)
    assert joined.sent == [([4, 6, 5], [2, 20], [2, 1]), ([[1.0], [3.0], [2.0]], [2, 20], [2, 1])]
    assert ids.tolist() == [7] * 22 and found.shape == (22, 1) and ids.dtype == torch.int64
    joined.sent.clear()
    first.send_to_all(rows, values)
    assert joined.sent[0] == ([4, 5, 6], [0, 0], [0, 3]) and joined.sent[1][0] == [[1.0], [2.0], [3.0]]
    table = torch.zeros(5, 1)
    first.gather_rows(table)
    assert table.flatten().tolist() == [100, 200, 100, 200, 100]
    first.broadcast_tensors(table)
    assert table.flatten().tolist() == [200, 300, 200, 300, 200]


def test_alone_nothing_is_exchanged() -> None:
    one, rows = Ranks(), (torch.tensor([1]), torch.tensor([[2.0]]))
    assert one.gather([3.0]) == [[3.0]] and one.broadcast("a") == "a" and one.is_first
    assert one.send_to_owners(*rows) == rows and not Ranks(1, 2).is_first
    assert one.mean(torch.tensor([3.0])).tolist() == [3.0]
    one.broadcast_tensors(rows[1])
    one.gather_rows(rows[1])
    model, reduce = nn.Linear(1, 1), GradientSums([], 1).reduce
    assert rows[1].item() == 2.0 and one.parallel(model, reduce) is model


def test_gradients_of_a_step_are_added_and_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    Joined(monkeypatch)
    one, two = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))
    sums = GradientSums([one, two, nn.Parameter(torch.zeros(1), requires_grad=False)], 4)
    assert len(sums.parameters) == 2
    for value in (1.0, 2.0):
        one.grad = torch.full((2,), value)
        sums.add()
        assert one.grad is None
    two.grad = torch.ones(3)
    sums.add()
    buffer = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    bucket: Any = SimpleNamespace(buffer=lambda: buffer, parameters=lambda: [one, two])
    reduced: Any = sums.reduce(bucket)
    assert reduced.tolist() == [(1 + 3 + 1) / 4, (2 + 3 + 1) / 4, 5 / 4, 6 / 4, 7 / 4] and not sums.sums
    one.grad = torch.full((2,), 8.0)
    sums.close()
    assert one.grad.tolist() == [2.0, 2.0] and one.grad.dtype == torch.float32 and not sums.sums


def test_running_statistics_are_the_mean_over_batches() -> None:
    norm = nn.BatchNorm1d(1)
    with averaged_statistics(
        nn.Sequential(norm, nn.BatchNorm1d(1, track_running_stats=False)), 2, Ranks()
    ) as one:
        for value in (1.0, 4.0):
            with one():
                norm(torch.tensor([[value], [value + 2]]))
    assert norm.running_mean is not None and norm.running_var is not None
    assert norm.running_mean.item() == pytest.approx(0.1 * (2.0 + 5.0) / 2)
    assert norm.running_var.item() == pytest.approx(0.9 + 0.1 * 2.0)
    assert norm.num_batches_tracked is not None and norm.num_batches_tracked.item() == 1


@pytest.mark.parametrize(
    ("given", "expected"), [({}, False), ({"RANK": "0"}, False), ({"WORLD_SIZE": "2"}, False)]
)
def test_a_launcher_sets_both_variables(
    given: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert ranks.launched() is expected and ranks.own_device("cuda") == "cuda" and not ranks.restarted()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert ranks.launched()
    with ranks.connected() as found:
        assert found is ranks.alone
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert [ranks.own_device(name) for name in ("cuda", "cpu")] == ["cuda:3", "cpu"] and ranks.restarted()


def test_a_lost_connection_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(who: Ranks, text: str = "reset. This is typically a crash\nmore") -> None:
        with who.connection_errors():
            raise RuntimeError(text)

    monkeypatch.setattr(ranks.dist, "is_initialized", lambda: True)
    with pytest.raises(ranks.PeerLost, match=r"rank 1 of 2: another rank has gone or is late \(reset\); see"):
        lost(Ranks(1, 2))
    with pytest.raises(ranks.PeerLost, match=r"\(no answer\)"):
        lost(Ranks(1, 2), "")
    with pytest.raises(RuntimeError, match="typically"):
        lost(Ranks())
    monkeypatch.setattr(ranks.dist, "is_initialized", lambda: False)
    with pytest.raises(RuntimeError, match="typically"):
        lost(Ranks(1, 2))


@pytest.mark.parametrize(("clip", "ending"), [(None, "try lr=0.002 or set clip=1.0"), (0.5, "try lr=0.002")])
def test_divergence_is_told_with_a_remedy(clip: float | None, ending: str) -> None:
    config = TrainConfig(lr=0.02, clip=clip)
    must_be_finite(1e300, "loss", 3, config)
    for value in (float("nan"), float("inf")):
        with pytest.raises(Diverged) as told:
            must_be_finite(value, "loss", 3, config)
        assert str(told.value) == f"the loss is {value} at epoch 3 with lr=0.02; {ending}"


def test_a_validation_loss_must_be_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"val_loss": float("nan"), "val_accuracy": 0.5}
    monkeypatch.setattr("conjoint.training.steps.WholeSteps.evaluate", lambda _: dict(broken))
    with pytest.raises(Diverged, match="validation loss is nan at epoch 2"):
        fit(small_model(), GRAPH, SPLIT, replace(CONFIG, evaluate_every=2))


def test_a_graph_of_pyg_is_trained_on_too() -> None:
    data = Data(x=GRAPH.x, y=GRAPH.y, edge_index=GRAPH.edge_index)
    one, two = (fit(small_model(), graph, SPLIT, CONFIG) for graph in (data, GRAPH))
    assert one.history == two.history
    chosen = one.result()
    assert chosen == {
        "best_epoch": one.best_epoch, "epochs": 3, "stopped": "epochs", "rule": "val-loss", "saw_test": False,
        "metrics": one.history[one.best_epoch - 1],
    }  # fmt: skip
    sizes = [float(p.detach().abs().max()) for p in one.model.parameters()]
    assert loop._largest_weight(one.model) == max(sizes)


def test_weights_of_labels_by_hand() -> None:
    y = torch.tensor([0, 0, 0, 1, 2, 2])
    graph = as_graph(Data(x=torch.ones(6, 1), y=y, edge_index=torch.tensor([[0], [1]])))
    train = torch.tensor([0, 1, 2, 3])
    balanced = class_factors(graph, train, "balanced")
    assert balanced is not None and balanced.tolist() == [4 / (2 * 3), 4 / 2, 1.0]
    named = class_factors(graph, train, {"1": 3.0})
    assert named is not None and named.tolist() == [1.0, 3.0, 1.0]
    assert class_factors(graph, train, None) is None and label_weights(graph, train, TrainConfig()) is None
    found = label_weights(graph, train, TrainConfig(class_weight={"1": 3.0}))
    assert found is not None and found.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2.0, 2 / 3, 2 / 3])
    own = replace(graph, label_weight=torch.tensor([0.0, 1.0, 1.0, 2.0, 5.0, 0.0]))
    found = label_weights(own, train, TrainConfig(class_weight={"1": 3.0}))
    assert found is not None and found.tolist() == pytest.approx([0.0, 0.5, 0.5, 3.0, 2.5, 0.0])
    with pytest.raises(InputError, match="no training node has a weight above 0"):
        label_weights(own, torch.tensor([0, 5]), TrainConfig())


@pytest.mark.parametrize("sample", [0, 5, 47, 48])
def test_nodes_that_must_agree_beside_those_that_train(sample: int) -> None:
    weight = torch.arange(60.0)
    whole = Batch(GRAPH.x, GRAPH.adjacency, GRAPH.y, torch.arange(60), weight)
    config = TrainConfig(consistency=Consistency(sample=sample), field="whole")
    torch.manual_seed(0)
    made = with_unlabelled(whole, SPLIT.train, small_model(), config)
    assert torch.equal(made.labels, GRAPH.y[SPLIT.train]) and made.weight is not None
    assert torch.equal(made.weight, weight[SPLIT.train])
    count = 60 if sample in (0, 48) else 12 + sample
    assert made.pick is not None and (made.x.size(0) == 60 or made.pick.numel() == count)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return start_run(tmp_path / "run", CONFIG, model=SPEC, data=small_data(), split=small_split())


def test_other_versions_are_told(run: Run) -> None:
    assert run.notes == []
    now = runs.versions()
    run.sidecar = replace(run.sidecar, versions={**now, "torch": "0.1", "abacus": "7"})
    told = f"torch 0.1 then, {now['torch']} now; abacus 7 then, none now"
    assert run.notes == [f"started with other versions ({told}): bits may differ"]


def test_labels_that_came_later_are_not_the_graph(run: Run) -> None:
    graph, path = small_data(), run.path / runs.LABELS
    assert as_started(run, graph) is graph
    later = graph.changed(y=(graph.y + 1) % 3)
    assert torch.equal(as_started(run, later).y, graph.y)
    with pytest.raises(InputError, match="trained on another graph"):
        as_started(run, graph.changed(given_x=graph.x + 1.0))
    for labels, said in (
        (np.zeros(59, np.int32), "expected 60 numbers of classes"),
        (np.zeros(60, np.float32), "expected 60 numbers of classes"),
        (np.full(60, 3, np.int32), "expected classes from -1 to 2"),
        (np.full(60, -2, np.int32), "expected classes from -1 to 2"),
    ):
        np.save(path, labels)
        with pytest.raises(InputError) as told:
            as_started(run, later)
        assert str(told.value).startswith(f"{path}: ") and said in str(told.value)
    path.unlink()
    with pytest.raises(InputError, match="trained on another graph"):
        as_started(run, later)


def test_a_history_is_read_as_far_as_asked(run: Run) -> None:
    rows = [{"epoch": k, "loss": 1.0} for k in (1, 2, 3)]
    run._write_history(rows)
    assert run.history() == rows and run.history(2) == rows[:2]
    with pytest.raises(InputError) as told:
        run.history(4)
    assert str(told.value).startswith(
        f"{run.path / runs.METRICS}: "
    ) and "3 rows, the checkpoint counts 4" in str(told.value)
    run._write_history([rows[0], rows[2]])
    with pytest.raises(InputError, match="line 2: "):
        run.history()
    with pytest.raises(ValueError):
        run._write_history([{"epoch": 1, "loss": float("nan")}])


def test_ids_are_of_all_nodes(run: Run) -> None:
    assert runs.node_ids(run).tolist() == [f"node {k}" for k in range(60)]
    np.save(run.path / runs.IDS, np.arange(59))
    with pytest.raises(InputError, match="expected 60 ids"):
        runs.node_ids(resume_run(str(run.path)))


def test_a_folder_that_cannot_be_moved_into_place_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "not allowed")

    monkeypatch.setattr(runs.os, "rename", refuse)
    with pytest.raises(Exception, match="not allowed"):
        start_run(tmp_path / "run", CONFIG, model=SPEC, data=small_data(), split=small_split())
    assert list(tmp_path.iterdir()) == []


def test_the_memory_of_nothing_and_of_graphs_without_classes() -> None:
    net = Network([64, 7], [8, 1])
    nothing = training_memory(Sizes(0, 0, 0), net)["training_bytes"]
    for kind in ("clusters", "neighbours"):
        assert batch_memory(BatchConfig(kind=kind), Sizes(0, 0, 0), net) == nothing
        one = training_memory(Sizes(1, 1, 5.0), net)["training_bytes"]
        assert batch_memory(BatchConfig(kind=kind), Sizes(1, 0, 5), net) == 33 + one
    bare = as_graph(graph_and_split()[0])
    bare = bare.changed(y=torch.full_like(bare.y, -1), class_names=[])
    two = bare.changed(y=torch.arange(bare.num_nodes) % 2, class_names=["a", "b"])
    for model in ("gat", "gcn", "rescat-i-mf"):
        assert full_memory(model, {}, bare) == full_memory(model, {}, two)
        ways = [
            choose_way(model, {}, one, np.arange(9), np.arange(9), available=2**30) for one in (bare, two)
        ]
        assert ways[0].needed == ways[1].needed


def test_a_field_is_taken_where_the_whole_does_not_fit_and_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("conjoint.training.memory.USABLE", 1.0)
    graph, few = as_graph(graph_and_split()[0]), np.arange(2)
    full = full_memory("gat", {}, graph)
    field = choose_way("gat", {}, graph, few, few, available=full)
    assert (field.kind, field.must, field.available) == ("field", False, full) and field.needed < full
    must = choose_way("gat", {}, graph, few, few, available=field.needed)
    assert (must.kind, must.must, must.needed) == ("field", True, field.needed)
    assert choose_way("gat", {}, graph, few, few, available=field.needed - 1).kind in (
        "clusters",
        "neighbours",
    )
    folder = replace(graph, folder=Path("somewhere"))
    assert choose_way("gat", {}, folder, few, few, available=field.needed).kind in ("clusters", "neighbours")
    every = np.arange(graph.num_nodes)
    large = choose_way("gat", {}, graph, few, every, available=full)  # validation needs more than training
    assert large.kind == "field" and field.needed < large.needed <= full
    metis = metis_bytes(graph.num_nodes, graph.num_edges)
    small = [choose_way("gat", {}, folder, every, every, available=n).kind for n in (metis, metis - 1)]
    assert small == ["clusters", "neighbours"] or metis >= full


def test_validation_nodes_choose_the_teleport() -> None:
    losses = {}
    for teleport in closed_form.TELEPORTS:
        model = LabelPropagation(60, 3, teleport=teleport)
        model.labels[SPLIT.train] = GRAPH.y[SPLIT.train]
        share = np.bincount(GRAPH.y[SPLIT.train].numpy(), minlength=3) + 1e-3
        model.prior.data.copy_(torch.from_numpy(np.log(share)))
        log_p = model(GRAPH.x, GRAPH.adjacency).log_softmax(1)[SPLIT.val]
        losses[teleport] = float(nn.functional.nll_loss(log_p, GRAPH.y[SPLIT.val]))
    found = closed_form.fit_propagation(GRAPH, SPLIT)
    assert found.teleport == min(losses, key=lambda t: losses[t]) and not found.prior.requires_grad
    fitted, kept = closed_form.fit_closed_form("label-propagation", {}, GRAPH, SPLIT, TrainConfig(seed=5))
    assert kept == {"teleport": found.teleport, "steps": 50}
    assert fitted.history[0]["val_loss"] == pytest.approx(min(losses.values()), rel=1e-5)
    assert (fitted.config.epochs, fitted.config.row_normalise, fitted.config.seed) == (1, "never", 5)
    assert fitted.stopped == "epochs" and fitted.history[0]["epoch"] == 1


@pytest.mark.parametrize(("classes", "only"), [(3, 1), (2, 0), (2, 1)])
def test_trees_of_a_single_class(classes: int, only: int) -> None:
    graph = GRAPH.changed(y=GRAPH.y.clamp(max=classes - 1), class_names=list("abc")[:classes])
    train = (graph.y == only).nonzero().squeeze(1)
    made = closed_form.fit_boosting(graph, Split(train, SPLIT.val, "one", 0), 0)
    expected = (
        [ABSENT if k != only else 0.0 for k in range(3)]
        if classes == 3
        else [ABSENT if only == 0 else -ABSENT]
    )
    assert made.baseline.tolist() == expected


def test_large_tables_are_read_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, x = np.arange(30), GRAPH.x.double().numpy()
    weight = np.random.default_rng(0).normal(size=(2, 12, 3))
    tables = []
    for most in (30 * 12 + 1, 30 * 12):
        monkeypatch.setattr(closed_form, "SINGLE_ABOVE", most)
        project, back = closed_form._products(GRAPH, x, [0, 1], rows)
        tables.append((project(weight), back(np.ones((30, 3)))))
    assert [table[0].dtype for table in tables] == [np.float64, np.float32]
    assert np.allclose(tables[0][0], tables[1][0], atol=1e-4) and tables[0][1].shape == (2, 12, 3)


def test_metrics_of_every_kind() -> None:
    y, p = (
        np.array([0, 1, 1, 2]),
        np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [1 / 3, 0, 2 / 3]]),
    )
    found = all_metrics(y, p)
    assert found == {**{name: round(one(y, p), 6) for name, one in METRICS.items()}, "majority": 0.5}
    assert found["log-loss"] == round(float(-np.log([0.7, 0.4, 0.3, 2 / 3]).mean()), 6)
    shares = np.tile([0.25, 0.5, 0.25], (4, 1))
    assert majority_metrics(y, 3) == {name: round(one(y, shares), 6) for name, one in METRICS.items()}
    pair, shares = np.array([0, 0, 1]), np.tile([2 / 3, 1 / 3], (3, 1))
    assert majority_metrics(pair, 2) == {name: round(one(pair, shares), 6) for name, one in METRICS.items()}
    two = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    assert roc_auc(np.array([0, 1, 0]), two) == 1.0 == average_precision(np.array([0, 1, 0]), two)
    for none in (np.zeros(3, int), np.ones(3, int)):
        assert roc_auc(none, two) == 0.5 and roc_auc(none, np.full((3, 3), 1 / 3)) == 0.5
    assert roc_auc(np.array([1, 0, 0]), two) == 0.0


def test_a_penalty_by_groups_with_crowded_nodes_against_loops() -> None:
    """P^T P node by node: all pairs of different draws, weighed by d^2 / (k (k - 1))."""
    rng = torch.Generator().manual_seed(0)
    rows = torch.randn(7, 3, generator=rng, dtype=torch.float64)
    drawn, degree, own = [[0, 3], [1, 2, 5], [6], [4, 4], [2, 0]], [5, 3, 1, 9, 2], [0, 1, 2, 3, 4]
    rowptr = torch.tensor([0, 2, 5, 6, 8, 10])
    col = torch.tensor([n for some in drawn for n in some])
    adj = Adjacency(rowptr, col, torch.arange(10), 7)
    products = []
    for node, some in enumerate(drawn):
        v, k, d = rows[some], len(some), degree[node]
        all_pairs = torch.outer(v.sum(0), v.sum(0))
        apart = (all_pairs - v.t() @ v) * d * d / max(1, k * (k - 1))
        products.append(apart if d > k else all_pairs)
    for groups, total in (((2, 3), 6), (None, 11)):
        sample = PenaltySample(torch.tensor(own), adj, torch.tensor(degree), groups, total, 20)
        of = [0, 0, 1, 1, 1] if groups else own
        value = 20.0
        for i, product in enumerate(products):
            value -= 2.0 * sample.c1 * float(product.trace())
            for j in range(5):
                score = float(rows[j] @ product @ rows[j])
                value += score * (sample.c1 if of[i] == of[j] else sample.c2)
        assert float(estimate(SelfExpression(7, 3), rows, sample)) == pytest.approx(value, rel=1e-5)
    pairs = PenaltySample(torch.tensor(own), adj, torch.tensor(degree), (2, 3), 6, 20)
    assert (pairs.drawn, pairs.c1, pairs.c2) == (2, 3.0, 6 * 5 / 2)
    assert replace(pairs, total=2).c2 == 1.0


def test_numbers_of_batches_and_clusters() -> None:
    config = BatchConfig(kind="neighbours", size=10, per_step=4)
    assert [batch_count(config, 1000, n) for n in (1, 40, 41, 80)] == [4, 4, 8, 8]
    assert batch_count(replace(config, kind="clusters"), 100, 1) == 12
    assert clusters(GRAPH, 1, 0).tolist() == [0] * 60
    assert set(clusters(GRAPH, 2, 0).tolist()) == {0, 1}
    found = clusters(GRAPH, 4, 2**31 + 5)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1)) and 1 <= found.max() <= 3


def test_schedules_by_hand() -> None:
    points = [0.0, 0.25, 0.5, 1.0]
    assert [SCHEDULES["constant"](t) for t in points] == [1.0] * 4
    assert [SCHEDULES["linear"](t) for t in points] == [1.0, 0.75, 0.5, 0.0]
    assert [SCHEDULES["cosine"](t) for t in points] == pytest.approx([1.0, 0.5 + 0.5**1.5, 0.5, 0.0])
    config = TrainConfig(epochs=6, warmup=2, lr=0.3, schedule="linear")
    assert [config.lr_at(k) for k in range(1, 7)] == pytest.approx([0.1, 0.2, 0.3, 0.2, 0.1, 0.003])
    assert TrainConfig(epochs=1, schedule="cosine", lr=0.3).lr_at(1) == 0.3
    assert TrainConfig(epochs=3, warmup=9, lr=1.0).lr_at(3) == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["cat-i-mf", "gat"])
def test_a_batch_moves_with_all_of_its_parts(name: str) -> None:
    """To torch's device without memory: every tensor must follow."""
    data, split = graph_and_split()
    model = build(name, features=data.num_features, classes=3, num_nodes=data.num_nodes)
    steps = BatchSteps(model, as_graph(data), split, CONFIG, BatchConfig(kind="clusters", size=50))
    batch, meta = steps.plan.epoch(1)[0], torch.device("meta")
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(meta)
    parts = [moved.x, moved.field.n_id, moved.pick, moved.labels, moved.rows]
    assert len({id(layer) for layer in moved.field.layers}) == len(
        {id(layer) for layer in batch.field.layers}
    )
    parts += [layer.col for layer in moved.field.layers]
    assert (moved.sample is None) is (name == "gat")
    if moved.sample is not None:
        parts += [moved.sample.own, moved.sample.adj.col, moved.sample.degree]
    assert {part.device for part in parts} == {meta} and moved.number == batch.number


def test_a_class_that_is_not_there_is_told_with_eight_that_are() -> None:
    graph = GRAPH.changed(class_names=[f"c{k}" for k in range(12)])
    with pytest.raises(InputError) as told:
        class_factors(graph, SPLIT.train, {"other": 1.0})
    assert str(told.value).endswith("there are c0, c1, c2, c3, c4, c5, c6, c7")


def test_batches_of_so_many_nodes_decide_how_products_are_computed() -> None:
    for size, nodes in ((5, 50), (7, 60)):
        batch = BatchConfig(kind="neighbours", size=size, per_step=1)
        made = BatchSteps(build("gat", features=12, classes=3, num_nodes=60), GRAPH, SPLIT, CONFIG, batch)
        assert made.nodes == nodes and made.workers == 0


def test_a_graph_of_pyg_is_evaluated_too() -> None:
    data = Data(x=GRAPH.x, y=GRAPH.y, edge_index=GRAPH.edge_index)
    fitted = fit(small_model(), GRAPH, SPLIT, CONFIG)
    assert evaluate(fitted, data, SPLIT) == evaluate(fitted, GRAPH, SPLIT)


def test_what_a_run_folder_says_of_itself_is_written_line_by_line(run: Run) -> None:
    text = run.sidecar.encoded().decode()
    assert text.startswith('{\n "') and text.endswith("}\n") and json.loads(text)["format"] == runs.FORMAT


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_table_in_pieces_is_the_whole(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    with table_in_pieces(path) as append:
        for k in range(12):
            append({"node": np.arange(2 * k, 2 * k + 2), "label": np.array(["a", "b"])})
    read = {"csv": pl.read_csv, "tsv": lambda p: pl.read_csv(p, separator="\t"), "parquet": pl.read_parquet}
    found = read[ending](path)
    assert found["node"].to_list() == list(range(24)) and found["label"].to_list() == ["a", "b"] * 12
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="must end in"), table_in_pieces(tmp_path / "out.txt"):
        pass


def test_probabilities_of_all_classes_are_in_the_table_only_if_asked_for() -> None:
    nodes, shares = np.array([4, 7]), np.array([[0.2, 0.5, 0.3], [0.75, 0.25, 0.0]])
    names = ["a", "b", "c"]
    plain = prediction_columns(nodes, shares, GRAPH, names, SPLIT)
    every = prediction_columns(nodes, shares, GRAPH, names, SPLIT, with_probabilities=True)
    assert list(plain) == ["id", "part", "label", "predicted", "probability"]
    assert plain["predicted"].tolist() == ["b", "a"] and plain["probability"].tolist() == [0.5, 0.75]
    assert list(every) == [*plain, "p(a)", "p(b)", "p(c)"] and every["p(c)"].tolist() == [0.3, 0.0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pieces_of_a_table_stay_in_order_whatever_their_size(ending: str, tmp_path: Path) -> None:
    path, sizes = tmp_path / f"out.{ending}", 3 * [300_000, *20 * [2]]  # more than is written at a time
    with table_in_pieces(path) as append:
        for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
            nodes = np.arange(start, start + size)
            append({"node": nodes, "id": nodes.astype(str)})
    found = pl.read_csv(path) if ending == "csv" else pl.read_parquet(path)
    assert np.array_equal(found["node"].to_numpy(), np.arange(sum(sizes)))


def test_a_field_pays_if_it_saves_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nodes that stand alone, so many have just that share of the work."""
    x, y = torch.ones(8, 2), torch.zeros(8, dtype=torch.long)
    graph = as_graph(Data(x=x, y=y, edge_index=torch.zeros(2, 0, dtype=torch.long)))
    model = build("gat", features=2, classes=2, num_nodes=8)
    monkeypatch.setattr("conjoint.training.steps.FIELD_PAYS_BELOW", 0.5)
    whole = whole_graph(model, graph, CONFIG)
    for count, cut in ((3, True), (4, False), (5, False)):
        batch = part_of(whole, torch.arange(count), model, "auto")
        assert (batch.pick is None) is cut and batch.x.size(0) == (count if cut else 8)


def test_weights_of_interventions_are_told_where_there_was_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fit(small_model(), GRAPH, SPLIT, CONFIG)
    shares = {"features": torch.tensor([0.5, 0.2]), "mf": torch.tensor([0.25, 0.50006])}
    three = {**shares, "zero": shares["mf"]}
    for layers, told in (([shares], False), ([three], True), ([], False)):
        monkeypatch.setattr(fitted.model, "intervention_weights", lambda layers=layers: layers)
        assert ("intervention_weights" in evaluate(fitted, GRAPH, SPLIT)) is told
    monkeypatch.setattr(fitted.model, "intervention_weights", lambda: [three] * 2)
    found = evaluate(fitted, GRAPH, SPLIT)["intervention_weights"]
    assert found == [{"features": 0.35, "mf": 0.375, "zero": 0.375}] * 2


def test_each_epoch_draws_the_nodes_that_must_agree() -> None:
    settings = Consistency(sample=7, passes=2)
    for field in ("whole", "receptive"):
        config = TrainConfig(epochs=2, patience=0, consistency=settings, field=field)
        fitted = fit(build("gat", features=12, classes=3, num_nodes=60, seed=0), GRAPH, SPLIT, config)
        assert [set(row) >= {"disagreement", "loss"} for row in fitted.history] == [True, True]


@pytest.mark.parametrize("distance", ["squared", "kl"])
def test_passes_that_are_sure_disagree_by_a_finite_number(distance: Any) -> None:
    logits = torch.tensor([[[200.0, -200.0]], [[-200.0, 200.0]], [[200.0, -200.0]]])
    found = disagreement(logits, Consistency(temperature=0.1, distance=distance))
    assert bool(found.isfinite()) and float(found) > 0.5
    assert float(disagreement(logits[:1], Consistency(distance=distance))) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", ["features", "classes", "num_nodes"])
def test_sizes_of_a_network_in_a_run_folder_have_bounds(name: str, run: Run) -> None:
    content = json.loads(run.sidecar.encoded())
    for value, sound in ((0, True), (2**40 - 1, True), (2**40, False), (-1, False)):
        content["model"][name] = value
        if sound:
            assert getattr(runs.sidecar_from(json.dumps(content), "here").model, name) == value
            continue
        with pytest.raises(InputError, match=f"^here: model: {name}={value} is out of range"):
            runs.sidecar_from(json.dumps(content), "here")
