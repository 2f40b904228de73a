"""A training step of every network of the default's members, at ogbn-arxiv's size, against its serial floor,
and how many steps its preparation takes.

    python -m benchmarks.members [--only "residual CAT"] [--rounds 3] [--cpu]

A step is an epoch as the default trains it: all nodes, all passes, the optimizer. Preparation is what comes
before the second epoch on a graph whose edges are sorted: scores, places in the graph, features brought to
scale. With --cpu both are the processor time of one thread, and so is the floor.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from conjoint.data import Graph, Split
from conjoint.graph.graph import build_graph
from conjoint.kernels import kept_memory
from conjoint.nn import zoo
from conjoint.nn.cat import CAT
from conjoint.nn.conjoint_layer import ConjointLayer
from conjoint.nn.model import NodeModel
from conjoint.nn.random_propagation import RandomPropagation
from conjoint.nn.residual import ResidualCAT
from conjoint.selection.members import MEMBERS, Member, facts_of
from conjoint.threads import steady_products
from conjoint.training.config import config_from
from conjoint.training.steps import WholeSteps

from .floor import bandwidth, gemm_flops
from .graphs import Case, arxiv_shaped

PER_CLASS = 20  # labels, for the members that few of them suit
Clock = Callable[[], float]


def graph_of(case: Case) -> Graph:
    source, target = case.edge_index.numpy()
    graph = build_graph(source, target, labels=case.y.numpy(), name=case.name, x=case.x.numpy())
    assert graph.adjacency.transposed.row.numel()
    return graph


def split_for(member: Member, case: Case, graph: Graph) -> Split | None:
    """Many labels if they suit the member, else few."""
    few = torch.cat([(case.y == label).nonzero()[:PER_CLASS, 0] for label in range(case.classes)])
    free = torch.ones(graph.num_nodes, dtype=torch.bool)
    for train in (case.train, few):
        if member.suits(facts_of(graph, train.numel())):
            free[train] = False
            return Split(train, free.nonzero()[:1000, 0], "a part")
    return None


def least_work(model: NodeModel, graph: Graph, passes: int) -> tuple[float, float]:
    """Floating-point operations and bytes that no order of work could leave out, roughly.

    A weight is multiplied forward and twice back, the first one once less. An entry gathers the narrower of
    what its layer reads and writes, and a number for each head of attention, forward and back. What stands
    between two maps is written and read, forward and back.
    """
    nodes, entries = graph.num_nodes, graph.adjacency.num_entries
    features, classes = graph.num_features, graph.num_classes
    products, gathered, between = 0.0, 0.0, 0.0  # per node, per entry, per node
    if isinstance(model, CAT):
        width = features
        for place, conv in enumerate(model.convs):
            assert isinstance(conv, ConjointLayer)
            out = conv.heads * conv.out_channels
            products += (3 if place else 2) * width * out
            gathered += min(width, out) + conv.heads
            between += 2 * out
            width = out
    elif isinstance(model, ResidualCAT):
        hidden, blocks = model.last.in_features, len(model.blocks)
        maps = 2 if model.edges else 1  # of the node itself and, if edges count, of its neighbours
        products = 2 * features * hidden + 3 * (maps * blocks * hidden * hidden + hidden * classes)
        layers = [layer for layer in model.modules() if isinstance(layer, ConjointLayer)]
        gathered = sum(hidden + layer.heads for layer in layers)
        between = features + hidden * (2 + (2 + maps) * blocks)
    else:
        assert isinstance(model, RandomPropagation)
        hidden, steps = model.second.in_features, model.steps
        products = 2 * features * hidden + 3 * hidden * classes
        gathered, between = steps * hidden, features + hidden * (2 + steps)
    moved = 4 * (2 * entries * gathered + 4 * nodes * between)
    return passes * 2.0 * nodes * products, passes * float(moved)


def measure(
    member: Member, case: Case, rounds: int, clock: Clock, flops: float, speed: float
) -> dict[str, Any] | None:
    graph = graph_of(case)  # its own, so that nothing is prepared already
    split = split_for(member, case, graph)
    if split is None:
        return None
    sizes = {"features": graph.num_features, "classes": graph.num_classes, "num_nodes": graph.num_nodes}
    model, config = zoo.build(member.model, **sizes, seed=0, **member.settings), config_from(member.train)
    times = []
    start = clock()
    steps = WholeSteps(model, graph, split, config, None)
    with kept_memory(), steady_products(graph.num_nodes):
        steps.train_epoch(1)
        prepared = clock() - start
        for epoch in range(2, rounds + 2):
            start = clock()
            steps.train_epoch(epoch)
            times.append(clock() - start)
    seconds = statistics.median(times)
    operations, moved = least_work(model, graph, config.passes)
    floor = operations / flops + moved / speed
    return {
        "seconds": seconds,
        "floor": floor,
        "prepared": max(0.0, prepared - seconds),
        "labels": split.train.numel(),
    }


def members(rounds: int = 3, only: str = "", clock: Clock = time.perf_counter) -> dict[str, Any]:
    """By name: seconds of a step, of its floor, of the preparation."""
    case, flops, speed = arxiv_shaped(64), gemm_flops(clock=clock), bandwidth(clock=clock)
    found: dict[str, Any] = {}
    for member in MEMBERS:
        if member.kind != "network" or only not in member.name:
            continue
        row = measure(member, case, rounds, clock, flops, speed)
        if row is not None:
            found[member.name] = row
            times = f"step {row['seconds']:.2f} s, {row['seconds'] / row['floor']:.1f} of its floor"
            print(
                f"{member.name}: {times}; prepared in {row['prepared'] / row['seconds']:.1f} steps",
                flush=True,
            )
    return found


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--only", default="", help="members whose name holds this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="processor time of one thread")
    given = parser.parse_args()
    torch.set_num_threads(1 if given.cpu else torch.get_num_threads())
    members(given.rounds, given.only, time.thread_time if given.cpu else time.perf_counter)


if __name__ == "__main__":
    main()
