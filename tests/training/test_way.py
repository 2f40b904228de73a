"""Which way to train is a function of sizes: the graph's and the memory's."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from conjoint.graph.adjacency import adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.graph import Graph, as_graph
from conjoint.training.memory import available_memory, choose_way, field_size
from scale_runs import graph_and_split

GIB = 2**30
WIDE = {"hidden": 64, "heads": 8}


def of(available: int, train: int = 150, model: str = "cat-i-mf", graph: Graph | None = None) -> str:
    nodes = np.arange(train)
    stored = graph or as_graph(graph_and_split()[0])
    return choose_way(model, WIDE if model != "gcn" else {}, stored, nodes, nodes, available=available).kind


def test_plenty_of_memory_means_the_full_graph() -> None:
    assert of(GIB) == "full"


def test_few_training_nodes_mean_their_receptive_field() -> None:
    assert of(GIB, train=2) == "field"


def test_too_little_memory_means_a_part_and_then_batches() -> None:
    stored, nodes = as_graph(graph_and_split()[0]), np.arange(150)
    whole = choose_way("cat-i-mf", WIDE, stored, nodes, nodes, available=GIB).needed
    few = choose_way("cat-i-mf", WIDE, stored, nodes[:2], nodes[:2], available=int(1.1 * whole))
    assert few.kind == "field" and few.must
    assert of(int(0.5 * whole)) == "clusters"
    assert of(30_000) == "neighbours"  # not even METIS fits


def test_a_folder_is_not_cut_in_memory() -> None:
    stored = replace(as_graph(graph_and_split()[0]), folder=Path("somewhere"))
    assert of(GIB, graph=stored) == "full" and of(2_000_000, train=2, graph=stored) in (
        "clusters",
        "neighbours",
    )


def test_models_that_need_the_whole_graph_get_it() -> None:
    data, split = graph_and_split()
    nodes = split.train.numpy()
    made = choose_way("gcn", {}, as_graph(data), nodes, nodes, available=1000)
    assert made.kind == "full" and made.must and "needs all of it" in str(made)


def test_the_field_is_counted_as_it_would_be_made() -> None:
    data, split = graph_and_split()
    targets = split.train[:5]
    made = receptive_field(adjacency(data.edge_index, 150), targets, 2)
    counted = field_size(as_graph(data), targets.numpy(), 2)
    assert (counted.nodes, counted.work) == (len(made.n_id), made.num_entries)
    assert counted.entries == made.layers[0].num_entries


def test_there_is_some_memory() -> None:
    assert 2**20 < available_memory() < 2**60
