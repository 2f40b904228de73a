"""One full training step (forward, loss, backward, Adam) of each contestant, as a function to call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from conjoint.graph.field import receptive_field
from conjoint.graph.sparse import rows
from conjoint.nn import ops
from conjoint.nn.cat import CAT
from conjoint.nn.interventions import Intervention, MatrixFactorization, SelfExpression
from conjoint.nn.ops import draw_seed
from conjoint.threads import steady_products

from .graphs import Case

Step = Callable[[], None]
DROPOUT = 0.6


class PyGGAT(nn.Module):
    """The usual two-layer GAT on PyG's GATConv."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.first = GATConv(case.x.size(1), case.hidden, case.heads, dropout=DROPOUT, bias=False)
        width = case.hidden * case.heads
        self.second = GATConv(width, case.classes, case.out_heads, concat=False, dropout=DROPOUT, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, DROPOUT, self.training)
        x = F.elu(self.first(x, edge_index))
        x = F.dropout(x, DROPOUT, self.training)
        return self.second(x, edge_index)


@contextmanager
def fast_dropout() -> Iterator[None]:
    """torch's serial CPU dropout replaced by ours, everywhere: what PyG would be with it."""
    slow = F.dropout

    def fast(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return ops.drop(input, p, draw_seed()) if training and p > 0.0 else input

    F.dropout = fast
    try:
        yield
    finally:
        F.dropout = slow


def pyg_step(case: Case) -> Step:
    model = PyGGAT(case).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    x, labels = case.dense_x, case.y[case.train]

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, case.edge_index)[case.train], labels).backward()
        optimizer.step()

    return step


def pyg_fd_step(case: Case) -> Step:
    slow = pyg_step(case)

    def step() -> None:
        with fast_dropout():
            slow()

    return step


def ours(case: Case, kind: str = "mf", *, field: bool = False) -> Step:
    """CAT with MF or SC (implicit), or with kind "gat" no intervention and no self term."""
    nodes = case.x.size(0)
    makers: dict[str, Callable[[int, int], Intervention]] = {"mf": MatrixFactorization, "sc": SelfExpression}
    intervention = makers[kind](nodes, case.classes) if kind in makers else None
    model = CAT(
        case.x.size(1),
        case.hidden,
        case.classes,
        intervention=intervention,
        heads=case.heads,
        out_heads=case.out_heads,
        dropout=DROPOUT,
        self_term=intervention is not None,
    ).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4, fused=True)
    whole, labels = case.graph, case.y[case.train]
    cut = receptive_field(whole, case.train, 2) if field else None
    x = case.x if cut is None else rows(case.x, cut.n_id)

    def step() -> None:
        with steady_products(nodes):  # as `fit` does it
            optimizer.zero_grad(set_to_none=True)
            if cut is None:
                (logits,), penalty = model.predict_often(x, whole)
                logits = logits[case.train]
            else:
                (logits,), penalty = model.predict_often(x, cut, whole)
            (F.cross_entropy(logits, labels) + 0.01 * penalty).backward()
            optimizer.step()

    return step


STEPS: dict[str, Callable[[Case], Step]] = {
    "cat-mf": lambda case: ours(case, "mf"),
    "cat-sc": lambda case: ours(case, "sc"),
    "cat-mf-field": lambda case: ours(case, "mf", field=True),
    "gat": lambda case: ours(case, "gat"),
    "pyg": pyg_step,
    "pyg_fd": pyg_fd_step,
}
