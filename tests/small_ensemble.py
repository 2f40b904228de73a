"""A small graph of three groups, and a search among a few members that takes a second."""

from typing import Any

import numpy as np
import torch

from conjoint.graph.graph import Graph, build_graph
from conjoint.graph.splits import Split
from conjoint.nn.ensemble import Ensemble
from conjoint.selection.members import MEMBERS, Budget, Member, with_settings
from conjoint.selection.portfolio import Portfolio
from conjoint.selection.search import learn_ensemble

QUICK = with_settings(MEMBERS, {"hidden": 8, "num_layers": 2}, {"epochs": 12})
FEW: list[Member] = [
    one for one in QUICK if one.name in ("logistic", "residual attention", "residual CAT, mf")
]


def made_graph(nodes: int = 120, hidden: int = 20, seed: int = 0) -> tuple[Graph, np.ndarray]:
    """Three groups that mostly keep to themselves, the last labels blanked; and all labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(nodes) % 3)
    same = y[:, None] == y[None, :]
    row, col = np.nonzero(np.triu(rng.random((nodes, nodes)) < np.where(same, 0.12, 0.02), 1))
    row, col = np.append(row, np.arange(nodes - 1)), np.append(col, np.arange(1, nodes))
    x = rng.normal(size=(nodes, 6)).astype(np.float32)
    x[np.arange(nodes), y] += 1.5
    shown = y.copy()
    shown[nodes - hidden :] = -1
    return build_graph(row, col, labels=shown, name="groups", x=x), y


def learnt(graph: Graph, split: Split, **options: object) -> tuple[Ensemble, torch.Tensor, Portfolio]:
    given: dict[str, Any] = {"budget": Budget(trials=30), "members": FEW, **options}
    ensemble, _, found = learn_ensemble(graph, split, 0, **given)
    return ensemble, ensemble.probabilities(graph.x, graph.adjacency), found
