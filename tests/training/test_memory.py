"""The predicted memory against a process that really trains, and the way to train that it decides.

Which way to train is a function of sizes: the graph's and the memory's.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conjoint import kernels
from conjoint.errors import InputError
from conjoint.graph.adjacency import adjacency
from conjoint.graph.field import receptive_field
from conjoint.graph.graph import Graph, as_graph
from conjoint.nn.zoo import build, settings_of
from conjoint.selection import learner
from conjoint.selection.members import MEMBERS
from conjoint.selection.setting import make_setting
from conjoint.training import BatchConfig, Consistency
from conjoint.training.memory import (
    USABLE,
    WITH_KERNELS,
    WITHOUT_KERNELS,
    Costs,
    Held,
    Network,
    Sizes,
    Way,
    available_memory,
    batch_memory,
    choose_way,
    describe,
    field_size,
    full_memory,
    parameter_groups,
    readable,
    training_memory,
)
from scale_runs import graph_and_split

PROBE = Path(__file__).parent.parent / "memory_probe.py"
GIB = 2**30
WIDE = {"hidden": 64, "heads": 8}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a process its peak")
@pytest.mark.parametrize(
    ("model", "hidden", "heads", "passes"),
    [
        ("cat-i-mf", 8, 8, 1),
        ("gat", 8, 8, 1),
        ("cat-i-mf", 8, 8, 3),
        ("spread-trust", 32, 0, 1),
        ("spread-trust", 32, 0, 4),
        ("rescat-i-mf", 64, 8, 1),  # members of the default, and the one before
    ],
)
def test_prediction_is_near_the_growth_of_a_real_process(
    model: str, hidden: int, heads: int, passes: int
) -> None:
    nodes, features, classes, edges = 30000, 64, 10, 150000
    numbers = [nodes, features, classes, edges, hidden, heads, passes]
    # The C library keeps freed tensors of a few megabytes, more or less of them by chance: a wide margin.
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", PROBE, model, *map(str, numbers)],
        capture_output=True,
        text=True,
        check=True,
    )
    about = describe(
        model,
        nodes=nodes,
        features=features,
        classes=classes,
        edges=edges,
        settings={"hidden": hidden, "heads": heads} if heads else {"hidden": hidden},
        passes=passes,
    )
    margin = 0.4 if about["memory"]["kernels"] else 0.6
    assert about["memory"]["training_bytes"] == pytest.approx(int(ran.stdout), rel=margin)


def test_prediction_grows_with_what_it_counts() -> None:
    small, large = Sizes(100, 1000, 500), Sizes(200, 2000, 1000)
    one, two = (
        training_memory(size, Network([64, 7], [8, 1], parameters=size.nodes // 2), costs=WITH_KERNELS)[
            "parts"
        ]
        for size in (small, large)
    )
    assert all(two[name] == pytest.approx(2 * one[name], abs=1) for name in one if name != "overhead")


def test_sparse_features_cost_what_is_stored() -> None:
    sizes: dict[str, Any] = {"nodes": 1000, "features": 5000, "classes": 3, "edges": 4000}
    dense = describe("gat", **sizes)["memory"]["training_bytes"]
    sparse = describe("gat", **sizes, nonzeros=50_000)["memory"]["training_bytes"]
    assert sparse < dense / 3
    assert describe("gat", nodes=1000, features=5000, classes=3)["memory"] is None
    with pytest.raises(InputError, match="nonzeros=-1"):
        describe("gat", **sizes, nonzeros=-1)


def network(name: str, **settings: Any) -> Network:
    made = build(name, features=5, classes=7, num_nodes=20, **settings)
    return Network.of(made, {**settings_of(name), **settings}, 7)


def test_layers_follow_the_settings() -> None:
    assert network("cat-i-mf", num_layers=3)[:4] == ([64, 64, 7], [8, 8, 1], 0, 0)
    units, heads, *_ = network("gcn")
    assert units[-1] == 7 and set(heads) == {1}
    assert network("spread-trust")[:4] == ([32, 7], [1, 1], 32, 8)
    assert network("cat-i-mf", propagate=3)[2:4] == (7, 3)


def test_passes_are_kept_until_their_gradient_is_made() -> None:
    sizes: dict[str, Any] = {"nodes": 1000, "features": 50, "classes": 3, "edges": 4000}
    for model in ("cat-i-mf", "gcn", "spread-trust", "gated-trust"):
        one, two, four = (describe(model, **sizes, passes=passes)["memory"]["parts"] for passes in (1, 2, 4))
        assert four["activations per node"] > two["activations per node"] > one["activations per node"]
        assert four["weights, gradients, Adam, best weights"] == one["weights, gradients, Adam, best weights"]


def test_a_huge_graph_is_described_without_being_built() -> None:
    about = describe("cat-i-mf", nodes=10**9, features=100, classes=50, edges=10**10)
    assert about["parameters"] > 5 * 10**10


def of(available: int, train: int = 150, model: str = "cat-i-mf", graph: Graph | None = None) -> str:
    nodes = np.arange(train)
    stored = graph or as_graph(graph_and_split()[0])
    return choose_way(model, WIDE if model != "gcn" else {}, stored, nodes, nodes, available=available).kind


def test_plenty_of_memory_means_the_full_graph() -> None:
    assert of(GIB) == "full"


def test_few_training_nodes_mean_their_receptive_field() -> None:
    assert of(GIB, train=2) == "field"


def test_nodes_that_must_be_consistent_are_all_computed() -> None:
    stored, few = as_graph(graph_and_split()[0]), np.arange(2)
    each = [Consistency(), Consistency(sample=5)]
    ways = [choose_way("gat", WIDE, stored, few, few, available=GIB, consistency=one) for one in each]
    assert [one.kind for one in ways] == ["full", "field"]


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


def test_the_default_gives_way_where_its_networks_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    data, split = graph_and_split()
    graph, default = as_graph(data), make_setting()
    for available, model in ((GIB, "ensemble"), (30_000, "cat-i-mf")):
        for module in ("training.memory", "selection.learner"):
            monkeypatch.setattr(f"conjoint.{module}.available_memory", lambda found=available: found)
        assert learner.settle(default, graph, split)[0].model == model


def test_members_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = as_graph(graph_and_split()[0])
    by_name = {member.name: member for member in MEMBERS}
    small, deep = by_name["residual CAT, mf"], by_name["deep residual CAT, mf"]
    needed = full_memory(small.model, small.settings, graph)
    monkeypatch.setattr(learner, "available_memory", lambda: int(needed / USABLE) + 1)
    assert learner.fits(small, graph) and not learner.fits(deep, graph)
    assert learner.fits(by_name["logistic"], graph)
    told: list[str] = []
    learned = learner.train_ensemble(
        make_setting(search={"trials": 2}), graph, graph.split("all"), 0, tell=told.append
    )
    assert "deep residual CAT, mf" in told[0] and learned.portfolio is not None


def test_the_field_is_counted_as_it_would_be_made() -> None:
    data, split = graph_and_split()
    targets = split.train[:5]
    made = receptive_field(adjacency(data.edge_index, 150), targets, 2)
    counted = field_size(as_graph(data), targets.numpy(), 2)
    assert (counted.nodes, counted.work) == (len(made.n_id), made.num_entries)
    assert counted.entries == made.layers[0].num_entries


def test_there_is_some_memory() -> None:
    assert 2**20 < available_memory() < 2**60


def test_a_folder_is_counted_with_what_reading_it_takes() -> None:
    stored, nodes = as_graph(graph_and_split()[0]), np.arange(150)
    folder = replace(stored, folder=Path("somewhere"))
    taken = [choose_way("gcn", {}, one, nodes, nodes, available=GIB).needed for one in (stored, folder)]
    assert taken[1] - taken[0] == 4 * stored.num_nodes * stored.num_features + 16 * stored.num_edges


def test_batches_keep_33_bytes_of_every_node() -> None:
    """8 each for row pointer, label, local number and order, 1 for the mask; the batch itself is the same."""
    network, config = Network([64, 7], [8, 1]), BatchConfig(kind="clusters", size=1000)
    one, two = (batch_memory(config, Sizes(n, 10 * n, 16 * n), network) for n in (100_000, 200_000))
    assert two - one == 33 * 100_000


def test_sizes_are_told_in_units_that_fit() -> None:
    assert [readable(n) for n in (3 * 2**20, 2**30 - 2**20, 2**30, 5 * 2**29)] == [
        "3 MiB",
        "1023 MiB",
        "1.0 GiB",
        "2.5 GiB",
    ]


def test_the_field_of_a_mapped_graph_has_the_loops_that_its_rows_leave_out() -> None:
    data, split = graph_and_split()
    graph, targets = as_graph(data), split.train[:5].numpy()
    bare = adjacency(data.edge_index, graph.num_nodes, self_loops=False)
    mapped = replace(graph, edges=(bare.rowptr.numpy(), bare.col.numpy()))
    assert field_size(mapped, targets, 2) == field_size(graph, targets, 2)


def test_the_prediction_by_hand() -> None:
    """2 + 3 x passes floats per unit, 5 + 7 per head, 11 + 13 per feature, 17 indices per entry."""
    costs = Costs(Held(2, 3), Held(5, 7), Held(11, 13), 17, 19, 23)
    sizes, net = Sizes(100, 1000, 500), Network([64, 7], [8, 1], propagated=6, steps=4, parameters=50)
    one, two = (training_memory(sizes, net, passes, costs)["parts"] for passes in (1, 2))
    assert list(one.values()) == [
        5 * 4 * 50,
        4 * 100 * (5 * 71 + 6 * (19 + 5)),
        4 * 1000 * 12 * 9,
        8 * 17 * 1000,
        4 * 24 * 500,
        23,
    ]
    per_node = 8 * 71 + 6 * (19 + 2 * 5) + 6 * 2 * 7  # the consistency term holds 6 per class and pass
    assert two["activations per node"] == 4 * 100 * per_node
    assert two["attention per edge"] == 4 * 1000 * 19 * 9
    plain = training_memory(sizes, net._replace(attends=False), 2, costs)
    assert plain["parts"]["attention per edge"] == one["attention per edge"]
    assert plain["training_bytes"] == sum(plain["parts"].values())


def test_the_prediction_takes_the_costs_of_the_kernels_in_use() -> None:
    sizes, net = Sizes(10, 20, 30), Network([4], [1])
    now = WITH_KERNELS if kernels.status()["active"] else WITHOUT_KERNELS
    assert training_memory(sizes, net) == training_memory(sizes, net, costs=now)
    with kernels.disabled():
        slow = training_memory(sizes, net)
    assert slow["kernels"] is False and slow == training_memory(sizes, net, costs=WITHOUT_KERNELS) | {
        "kernels": False
    }


def test_what_of_a_residual_network_takes_memory() -> None:
    """Both halves of a block per layer and the three parts of its readout; half of the weights on entries."""
    deep = network("rescat-i-mf", num_layers=3, hidden=18, heads=6)
    assert (deep.units, deep.heads) == ([36, 36, 36, 54], [3, 3, 3])
    assert network("rescat-i-mf", hidden=16, heads=1).heads == [1, 1]
    assert network("gat", num_layers=3, out_heads=2)[:2] == ([64, 64, 14], [8, 8, 2])
    assert Network([3], [1]) == ([3], [1], 0, 0, 0, True)
    assert network("gat").attends and not network("gcn").attends
    assert network("gcn", hidden=16)[:4] == ([16, 7], [1, 1], 0, 0)
    assert network("sgc").units == [7, 7]


def test_parameters_are_told_by_the_part_that_they_belong_to() -> None:
    made = build("cat-i-mf", features=5, classes=7, num_nodes=20, norm="batch")
    # V: 20 x 7; weights, two attention vectors, two shares of the mix and one of the self term, per head.
    assert parameter_groups(made) == {
        "structural factors V": 20 * 7,
        "layer 1": 64 * 5 + 2 * 64 + 8 * 2 + 8,
        "layer 2": 7 * 64 + 2 * 7 + 2 + 1,
        "normalisation 1": 2 * 64,
    }


def test_memory_is_what_the_system_and_the_control_group_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    500 kB\nSwapFree: 1 kB\n",
        "/sys/fs/cgroup/memory.max": "300000\n",
        "/sys/fs/cgroup/memory.current": "100000\n",
    }
    monkeypatch.setattr("conjoint.training.memory._read", lambda path: files.get(path, ""))
    assert available_memory() == 200_000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert available_memory() == 512_000
    files["/sys/fs/cgroup/memory.max"] = "90000"
    assert available_memory() == 0
    files.clear()
    assert available_memory() == 2**63


def test_eight_tenths_of_the_memory_may_be_filled_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjoint.training.memory.USABLE", 1.0)
    stored, nodes = as_graph(graph_and_split()[0]), np.arange(150)
    for given in (None, Consistency()):
        options: dict[str, Any] = {"consistency": given}
        whole = choose_way("gat", WIDE, stored, nodes, nodes, available=GIB, **options).needed
        exact, less = (
            choose_way("gat", WIDE, stored, nodes, nodes, available=n, **options) for n in (whole, whole - 1)
        )
        assert (exact.kind, exact.must, less.must) == ("full", False, True)
        assert exact.why == ("it fits" if given is None else "all of its nodes must be consistent")
    gcn = [choose_way("gcn", {}, stored, nodes, nodes, available=GIB).needed - less for less in (0, 1)]
    ways = [choose_way("gcn", {}, stored, nodes, nodes, available=one) for one in gcn]
    assert [way.must for way in ways] == [False, True]
    assert USABLE == 0.8


def test_a_way_is_told_in_one_line() -> None:
    told = [str(Way(kind, 3 * 2**20, GIB, "so")) for kind in ("full", "field", "clusters")]
    assert told == [
        "training on the full graph: about 3 MiB of 1.0 GiB (so)",
        "training on the receptive field of the training nodes: about 3 MiB of 1.0 GiB (so)",
        "training in batches of clusters: about 3 MiB of 1.0 GiB (so)",
    ]


def test_a_batch_of_neighbours_grows_by_its_fanout_as_far_as_there_are_neighbours() -> None:
    """Rings of 10, 10 x 3 and 30 x 2 nodes (of 4 neighbours in the mean): 100 nodes, 40 + 90 entries."""
    net = Network([64, 7], [8, 1])
    config = BatchConfig(kind="neighbours", size=10, fanout=(3, 2))
    graph = Sizes(10_000, 40_000, 160_000)
    one = training_memory(Sizes(100, 130, 1600.0), net)["training_bytes"]
    assert batch_memory(config, graph, net) == 33 * 10_000 + one
    wide = replace(config, fanout=(9,))  # rings of 10, 40 and 160
    one = training_memory(Sizes(210, 250, 3360.0), net)["training_bytes"]
    assert batch_memory(wide, graph, net) == 33 * 10_000 + one
    clusters = BatchConfig(kind="clusters", size=100)
    one = training_memory(Sizes(100, 500, 1600.0), net)["training_bytes"]
    assert batch_memory(clusters, graph, net) == 33 * 10_000 + one
    all_of_it = training_memory(Sizes(50, 250, 800.0), net)["training_bytes"]
    assert batch_memory(clusters, Sizes(50, 200, 800), net) == 33 * 50 + all_of_it


def test_a_description_counts_both_directions_and_loops() -> None:
    about = describe("gat", nodes=100, features=5, classes=7, edges=300)
    made = build("gat", features=5, classes=7, num_nodes=100)
    net = Network.of(made, settings_of("gat"), 7)
    assert about["memory"]["training_bytes"] == training_memory(Sizes(100, 700, 500), net)["training_bytes"]
    cut = Sizes(100, 600, 500)
    assert about["memory"]["batches"] == {
        kind: batch_memory(BatchConfig(kind=kind), cut, net) for kind in ("clusters", "neighbours")
    }
    sparse = describe("gat", nodes=100, features=5, classes=7, edges=0, nonzeros=40)["memory"]
    assert sparse["training_bytes"] == training_memory(Sizes(100, 100, 80), net)["training_bytes"]
    assert describe("gcn", nodes=100, features=5, classes=7, edges=3)["memory"]["batches"] == {}


@pytest.mark.parametrize("model", ["gat", "cat-i-mf"])
def test_the_full_graph_is_counted_with_a_loop_at_every_node(model: str) -> None:
    graph = as_graph(graph_and_split()[0])
    made = build(model, features=graph.num_features, classes=graph.num_classes, num_nodes=graph.num_nodes)
    net = Network.of(made, settings_of(model), graph.num_classes)
    entries = adjacency(graph.edge_index, graph.num_nodes).num_entries
    sizes = Sizes(graph.num_nodes, entries, graph.num_nodes * graph.num_features)
    assert full_memory(model, {}, graph) == training_memory(sizes, net)["training_bytes"]
