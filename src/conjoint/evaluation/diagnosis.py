"""Before training: what the graph is like, and which interventions know something about its classes.

Only the labels of the given nodes are looked at; with the training part's, nothing of validation or test is
used. Edges are undirected pairs here, loops and repetitions left out.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import InputError
from ..graph import decoys
from ..graph.adjacency import Adjacency, adjacency
from ..graph.smoothing import reduced_features
from ..graph.sparse import row_normalise
from ..nn.interventions import LowRank, catalogue
from .auc import Interval, auc, share

LEARNING_STEPS = 300
KNOWS = 0.55  # an AUC whose interval lies above this is worth a training


@dataclass(frozen=True)
class Evidence:
    """What one intervention's score says about the labelled edges; no `auc` unless they are of two kinds."""

    name: str
    about: str
    auc: Interval | None

    @property
    def knows(self) -> bool:
        return self.auc is not None and self.auc.low > KNOWS


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found. `evidence` stands in falling order of the interval's lower end."""

    nodes: int
    edges: int
    degree: dict[str, float]  # mean, median, most, and the share of nodes without an edge
    labelled_nodes: int
    labelled_edges: int  # edges whose two ends are among the labelled nodes
    homophily: Interval | None  # share of them that join nodes of one class
    by_chance: float  # the same for two labelled nodes at random
    random_edges: float | None  # this share looks like random pairs; None without edges
    evidence: tuple[Evidence, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def diagnose(
    data: Data, labelled: Tensor, *, interventions: Sequence[str] | None = None, seed: int = 0
) -> Diagnosis:
    """Look at the graph with the labels of `labelled` nodes (their indices) alone.

    Args:
        interventions: names of `conjoint.nn.interventions.catalogue`; all of them by default. Those that are
            learnt are fitted to the graph by themselves, without labels.
        seed: of the random pairs, and of the initial factors.
    """
    if data.x is None or data.edge_index is None or data.y is None:
        raise InputError("the graph needs features, edges and labels to be diagnosed; name its files")
    nodes = int(data.num_nodes or 0)
    x = _as_read(data.x)
    adj = adjacency(data.edge_index, nodes)
    row, col = adj.row.numpy(), adj.col.numpy()
    once = _once(row, col, nodes)
    known = np.full(nodes, -1)
    known[labelled.numpy()] = data.y.numpy()[labelled.numpy()]
    judged = once[(known[row[once]] >= 0) & (known[col[once]] >= 0)]
    same = known[row[judged]] == known[col[judged]]
    classes = len(getattr(data, "class_names", None) or []) or int(data.y.max()) + 1
    meant = [name for name, kind in catalogue.KINDS.items() if not kind.control]
    names = meant if interventions is None else interventions
    evidence = [_evidence(name, adj, x, classes, judged, same, seed) for name in names]
    ends = np.concatenate([row[once], col[once]])
    count = np.bincount(ends, minlength=nodes)
    shares = np.bincount(known[known >= 0]) / max(len(labelled), 1)
    return Diagnosis(
        nodes=nodes,
        edges=len(once),
        degree={
            "mean": float(count.mean()),
            "median": float(np.median(count)),
            "most": float(count.max()),
            "without": float((count == 0).mean()),
        },
        labelled_nodes=len(labelled),
        labelled_edges=len(judged),
        homophily=share(int(same.sum()), len(same)),
        by_chance=float((shares**2).sum()),
        random_edges=_random_edges(x, adj, seed),
        evidence=tuple(sorted(evidence, key=lambda found: -1.0 if found.auc is None else -found.auc.low)),
    )


def _evidence(
    name: str,
    adj: Adjacency,
    x: Tensor,
    classes: int,
    judged: npt.NDArray[Any],
    same: npt.NDArray[Any],
    seed: int,
) -> Evidence:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        intervention = catalogue.make(name, adj.num_dst, classes)
    if isinstance(intervention, LowRank):
        settle(intervention, adj)
    with torch.no_grad():
        score = intervention(adj, x).numpy()
    return Evidence(name, catalogue.KINDS[name].about, auc(score[judged], same))


def settle(intervention: LowRank, adj: Adjacency, steps: int = LEARNING_STEPS) -> None:
    """Learn the factors from the graph alone, by their own loss."""
    optimizer = torch.optim.Adam(intervention.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        intervention.penalty(adj).backward()
        optimizer.step()


def _as_read(x: Tensor) -> Tensor:
    """The features as training reads them by default."""
    x = x if x.is_floating_point() else x.float()
    stored = x.values() if x.layout == torch.sparse_csr else x
    return x if bool((stored < 0).any()) else row_normalise(x)


def _once(row: npt.NDArray[Any], col: npt.NDArray[Any], nodes: int) -> npt.NDArray[Any]:
    """The first entry of each undirected pair. -> places among the entries"""
    low, high = np.minimum(row, col), np.maximum(row, col)
    first = np.unique(low * nodes + high, return_index=True)[1]
    return first[row[first] != col[first]]


def _random_edges(x: Tensor, adj: Adjacency, seed: int) -> float | None:
    """The share of edges that look like random pairs put among them, see `conjoint.graph.decoys`."""
    if adj.num_dst < 3 or not bool((adj.row != adj.col).any()):
        return None
    vectors = reduced_features(x, rank=64, seed=seed, centre=True)
    return decoys.noise_share(*decoys.compare(vectors, adj.edge_index, adj.num_dst, hops=2, seed=seed))
