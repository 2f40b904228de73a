"""Batches: the same from (seed, epoch, number) alone, whole over an epoch, true to the graph."""

from typing import Any

import numpy as np
import pytest
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import Graph, as_graph
from conjoint.training import BatchConfig
from conjoint.training.batches import (
    ALL,
    METIS_PER_ENTRY,
    METIS_PER_NODE,
    BatchPlan,
    NodeBatch,
    Places,
    assign_clusters,
    clusters,
    draw,
    metis_bytes,
    neighbourhood,
)
from scale_runs import graph_and_split


def plan(kind: str, per_step: int = 1, **more: int) -> BatchPlan:
    data, split = graph_and_split()
    size = {"clusters": 40, "neighbours": 15}[kind]
    config = BatchConfig(kind=kind, size=size, joined=3, fanout=(3, 2), per_step=per_step, **more)
    return BatchPlan(as_graph(data), split.train, config, seed=5, hops=2)


def tensors(batch: NodeBatch) -> list[torch.Tensor]:
    parts = [batch.x, batch.labels, batch.pick, batch.rows, batch.field.n_id]
    parts += [part for layer in batch.field.layers for part in (layer.rowptr, layer.col)]
    assert batch.sample is not None
    return [*parts, batch.sample.own, batch.sample.adj.col, batch.sample.adj.rowptr, batch.sample.degree]


def same(one: NodeBatch, other: NodeBatch) -> bool:
    left, right = tensors(one), tensors(other)
    return one.number == other.number and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
def test_a_batch_follows_from_seed_epoch_and_number(kind: str) -> None:
    made = plan(kind)
    order = list(range(made.count))
    expected = [made.epoch(3)[k] for k in order]
    for workers in (0, 2):
        assert all(
            same(a, b) for a, b in zip(expected, plan(kind).epoch(3).loader(order, workers), strict=True)
        )
    backwards = [made.epoch(3)[k] for k in reversed(order)]
    assert all(same(a, b) for a, b in zip(expected, reversed(backwards), strict=True))
    assert not all(same(a, b) for a, b in zip(expected, made.epoch(4).loader(order), strict=True))


@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
@pytest.mark.parametrize("per_step", [1, 4])
def test_an_epoch_meets_every_training_node_once(kind: str, per_step: int) -> None:
    made = plan(kind, per_step)
    _, split = graph_and_split()
    batches = [made.epoch(1)[k] for k in range(made.count)]
    met = torch.cat([b.field.n_id[b.pick] for b in batches])
    assert torch.equal(met.sort().values, split.train.sort().values)
    assert made.count % per_step == 0
    shares = sum(b.weight * len(b.labels) for b in batches) / made.count
    assert shares == pytest.approx(1.0, rel=0.3)  # exactly 1 where all batches have equally many groups


@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
def test_every_node_pays_for_the_penalty_once_an_epoch(kind: str) -> None:
    made = plan(kind)
    own = []
    for k in range(made.count):
        batch = made.epoch(1)[k]
        assert batch.sample is not None
        own.append(batch.rows[batch.sample.own])
        assert torch.equal(batch.rows[: len(batch.field.n_id)], batch.field.n_id)
        assert len(batch.rows.unique()) == len(batch.rows)
    assert torch.equal(torch.cat(own).sort().values, torch.arange(150))


def adjacent(graph: Graph) -> np.ndarray:
    full = np.eye(graph.num_nodes, dtype=bool)
    full[np.repeat(np.arange(graph.num_nodes), graph.degree), graph.col] = True
    return full


def test_cluster_batches_hold_all_edges_inside() -> None:
    made = plan("clusters")
    full = adjacent(made.graph)
    for k in range(made.count):
        field = made.epoch(2)[k].field
        nodes = field.n_id.numpy()
        local = np.zeros((len(nodes), len(nodes)), dtype=bool)
        local[field.layers[0].row, field.layers[0].col] = True
        assert np.array_equal(local, full[np.ix_(nodes, nodes)])
        assert field.layers[0].num_entries == int(local.sum())


def test_neighbourhoods_are_bounded_distinct_and_real() -> None:
    made = plan("neighbours")
    full = adjacent(made.graph)
    heard = 0
    for k in range(made.count):
        field = made.epoch(2)[k].field
        nodes = field.n_id.numpy()
        for layer, fanout in zip(field.layers, (3, 3), strict=True):
            row, col = layer.row.numpy(), layer.col.numpy()
            assert full[nodes[row], nodes[col]].all()
            assert len(np.unique(row * len(nodes) + col)) == len(row)
            assert bool((np.bincount(row) <= fanout + 1).all())
            assert set(zip(range(layer.num_dst), range(layer.num_dst), strict=True)) <= set(
                zip(row.tolist(), col.tolist(), strict=True)
            )
        targets = field.layers[-1]
        outer = field.layers[0].degree[targets.num_dst :]
        assert outer.numel() == 0 or int(outer.max()) <= 3  # the second hop draws two, and itself
        heard += targets.num_entries
    assert heard > made.count * 15  # not only themselves


def test_all_neighbours_are_the_receptive_field() -> None:
    from conjoint.graph.adjacency import adjacency
    from conjoint.graph.field import receptive_field

    data, split = graph_and_split()
    graph, targets = as_graph(data), split.train.numpy()[:4]
    with Places(graph.num_nodes) as places:
        found = neighbourhood(graph, targets, (ALL, ALL), None, places)
    expected = receptive_field(adjacency(data.edge_index, graph.num_nodes), torch.from_numpy(targets), 2)
    assert torch.equal(found.n_id, expected.n_id)
    for one, other in zip(found.layers, expected.layers, strict=True):
        assert torch.equal(one.degree, other.degree)
        assert torch.equal(*(torch.stack([a.row, a.col]).unique(dim=1) for a in (one, other)))


def test_draws_are_even() -> None:
    """Over many draws every neighbour of a crowded node comes up equally often."""
    graph = plan("neighbours").graph
    hub = np.array([int(graph.degree.argmax())])
    rng = np.random.default_rng(0)
    found = np.concatenate([draw(graph, hub, 3, rng).offset for _ in range(4000)])
    counts = np.bincount(found, minlength=int(graph.degree[hub[0]]))
    assert abs(counts / counts.mean() - 1).max() < 0.12


def test_clusters_cut_fewer_edges_than_chance() -> None:
    graph = plan("clusters").graph
    found = clusters(graph, 6, seed=1)
    assert np.array_equal(found, clusters(graph, 6, seed=1)) and found.max() == 5
    row = np.repeat(np.arange(graph.num_nodes), graph.degree)
    shuffled = np.random.default_rng(0).permutation(found)
    assert (found[row] == found[graph.col]).mean() > 1.5 * (shuffled[row] == shuffled[graph.col]).mean()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "other"}, "kind='other'"),
        ({"kind": "clusters", "joined": 1}, "joined=1"),
        ({"kind": "clusters", "per_step": 0}, "per_step=0"),
        ({"kind": "neighbours", "fanout": ()}, "fanout"),
        ({"kind": "neighbours", "fanout": (3, 0)}, "fanout"),
        ({"kind": "neighbours", "size": 1.5}, "size=1.5"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        BatchConfig(**settings)  # type: ignore[arg-type]


def test_one_batch_is_one_cluster_and_several_join_some() -> None:
    data, split = graph_and_split()
    graph, nodes = as_graph(data), data.num_nodes
    for size, parts in ((nodes, 1), (nodes - 1, 2 * 3), (1, nodes)):
        config = BatchConfig(kind="clusters", size=size, joined=3, per_step=1)
        found = assign_clusters(graph, split.train, config, 0)
        assert found.max() < parts and bool(found.any()) is (parts > 1), size


def test_the_memory_of_metis_grows_with_entries_and_nodes() -> None:
    assert metis_bytes(10, 3) == 10 * METIS_PER_NODE + 3 * METIS_PER_ENTRY


def test_batches_estimate_the_penalty_unless_told_otherwise() -> None:
    data, split = graph_and_split()
    config = BatchConfig(kind="neighbours", size=15)
    cases: list[tuple[dict[str, Any], bool]] = [({}, True), ({"penalise": False}, False)]
    for options, sampled in cases:
        made = BatchPlan(as_graph(data), split.train, config, seed=5, hops=2, **options)
        assert (made.epoch(1)[0].sample is not None) is sampled and not made.normalise


@pytest.mark.parametrize("kind", ["clusters", "neighbours"])
def test_rows_of_a_batch_are_divided_by_their_sums_if_asked_for(kind: str) -> None:
    data, split = graph_and_split()
    graph = as_graph(data).changed(given_x=data.x.abs() + 1.0)
    config = BatchConfig(kind=kind, size=40)
    plain, divided = (
        BatchPlan(graph, split.train, config, seed=5, hops=2, normalise=normalise).epoch(1)[0].x
        for normalise in (False, True)
    )
    torch.testing.assert_close(divided, plain / plain.sum(dim=1, keepdim=True))
    assert not torch.allclose(divided, plain)
