"""The public API put where PyG's stood: `CATConv` for `GATConv`, and the README's `CAT` step, as ratios.

    python -m benchmarks.layers [--seconds 3] [--rows layer,cat] [--graphs cora,pubmed] [--cpu] [--out FILE]

Both take turns in one process; times are lower quartiles, which a busy machine disturbs least. With --cpu
they are the processor time of one thread, without the turns that other processes had in between. Beside a
layer stand its three products with W alone, by torch: what neither could do without. --out appends a line of
JSON for each row.
"""

import argparse
import datetime
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GATConv

from conjoint import CAT, CATConv, MatrixFactorization, SelfExpression, load
from conjoint.graph.sparse import row_normalise

from .graphs import Case
from .peers import PyGGAT

Step = Callable[[], None]
Pair = tuple[str, Step, Step, Step | None]  # a row's name, ours, PyG's, the products alone


def quartiles(
    *steps: Step, seconds: float, least: int = 8, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    times: list[list[float]] = [[] for _ in steps]
    for step in (*steps, *steps):
        step()
    end = clock() + seconds
    while clock() < end or len(times[0]) < least:
        for found, step in zip(times, steps, strict=True):
            start = clock()
            step()
            found.append(clock() - start)
    return [sorted(found)[len(found) // 4] for found in times]


def layer_step(layer: torch.nn.Module, x: Tensor, edge_index: Tensor) -> Step:
    """Forward and backward, with the gradient of x, as in the middle of a network."""

    def step() -> None:
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x, edge_index).sum().backward()

    return step


def products(x: Tensor, width: int) -> Step:
    """W x, and the gradients of W and of x."""
    weight, grad, x = torch.randn(width, width), torch.randn(x.size(0), width), x.detach()

    def step() -> None:
        x @ weight.t(), grad.t() @ x, grad @ weight

    return step


def layers(case: Case) -> Iterator[Pair]:
    nodes = case.x.size(0)
    for width in (64, 256):
        for dropout in (0.0, 0.6):
            x = torch.randn(nodes, width).requires_grad_()
            pyg = layer_step(GATConv(width, width // 8, 8, dropout=dropout), x, case.edge_index)
            for name in ("none", "mf"):
                scores = None if name == "none" else MatrixFactorization(nodes, case.classes)
                ours = CATConv(width, width // 8, 8, dropout=dropout, intervention=scores)
                title = f"CATConv {width}, dropout {dropout}, {name}"
                yield title, layer_step(ours, x, case.edge_index), pyg, products(x, width)


def training_step(model: CAT | PyGGAT, x: Tensor, case: Case, penalised: bool) -> Step:
    """The README's: all labels, fused Adam for both."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def step() -> None:
        loss = F.cross_entropy(model(x, case.edge_index), case.y)
        if isinstance(model, CAT) and penalised:
            loss = loss + 0.01 * model.penalty()
        optimizer.zero_grad(), loss.backward(), optimizer.step()

    return step


def networks(case: Case) -> Iterator[Pair]:
    features, nodes = case.x.size(1), case.x.size(0)
    pyg = training_step(PyGGAT(case), case.dense_x, case, False)
    for stored, x in (("sparse", case.x), ("dense", case.dense_x)):
        for name, make in (("mf", MatrixFactorization), ("sc", SelfExpression), ("gat", None)):
            scores = None if make is None else make(nodes, case.classes)
            model = CAT(features, 8, case.classes, intervention=scores, self_term=make is not None)
            yield f"CAT {name}, {stored}", training_step(model, x, case, make is not None), pyg, None


ROWS = {"layer": layers, "cat": networks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--graphs", default="cora,pubmed")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--cpu", action="store_true", help="processor time of one thread")
    parser.add_argument("--out", type=Path, help="rows as JSON, a line each, behind those that are there")
    given = parser.parse_args()
    clock = time.thread_time if given.cpu else time.perf_counter
    torch.set_num_threads(1 if given.cpu else torch.get_num_threads())
    threads = torch.get_num_threads()
    print(f"{threads} threads")
    for graph in given.graphs.split(","):
        data = load(graph)
        case = Case(graph, row_normalise(data.x), data.edge_index, data.y, data.train_mask)
        for kind in given.rows.split(","):
            for name, *steps in ROWS[kind](case):
                if given.only not in name:
                    continue
                found = quartiles(*(one for one in steps if one), seconds=given.seconds, clock=clock)
                ms = dict(
                    zip(("ours", "pyg", "products"), (round(1e3 * one, 3) for one in found), strict=False)
                )
                ratio = ms["pyg"] / ms["ours"]
                least = f", products {ms['products']:.2f} ms" if "products" in ms else ""
                print(
                    f"{graph:7} {name:32} {ratio:5.1f}x  {ms['ours']:7.2f} ms, {ms['pyg']:7.1f} ms{least}",
                    flush=True,
                )
                if given.out is not None:
                    row = {
                        "date": str(datetime.date.today()),
                        "threads": threads,
                        "graph": graph,
                        "row": name,
                    }
                    with given.out.open("a") as file:
                        file.write(json.dumps({**row, "clock": clock.__name__, "ms": ms}) + "\n")


if __name__ == "__main__":
    main()
