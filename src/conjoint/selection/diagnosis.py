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

from ..graph import decoys
from ..graph.adjacency import Adjacency
from ..graph.graph import Graph, as_graph
from ..graph.proximity import reduced_features
from ..nn.interventions import LowRank, catalogue

LEARNING_STEPS = 300
KNOWS = 0.55  # an AUC whose interval lies above this is worth a training
FEW_EDGES = 10  # fewer labelled edges than this of either kind say next to nothing
NOISY = 0.25  # from this share of random-looking edges on, the graph is called noisy
# Tried whatever the labelled edges say, for those are often a handful: no structure at all, the paper's own,
# and the two that tell alike neighbours from others without any label.
ALWAYS = ("zero", "mf", "smooth", "trust")
STRATEGIES = {"i": "implicit", "e": "explicit"}


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% confidence interval."""

    value: float
    low: float
    high: float


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
    data: Graph, labelled: Tensor, *, interventions: Sequence[str] | None = None, seed: int = 0
) -> Diagnosis:
    """Look at the graph with the labels of `labelled` nodes (their indices) alone.

    Args:
        interventions: names of `conjoint.nn.interventions.catalogue`; all of them by default. Those that are
            learnt are fitted to the graph by themselves, without labels.
        seed: of the random pairs, and of the initial factors.
    """
    data = as_graph(data)
    nodes, x = data.num_nodes, data.inputs("auto", torch.empty(0))  # as training reads them by default
    adj = data.adjacency
    row, col = adj.row.numpy(), adj.col.numpy()
    once = _once(row, col, nodes)
    known = np.full(nodes, -1)
    known[labelled.numpy()] = data.y.numpy()[labelled.numpy()]
    judged = once[(known[row[once]] >= 0) & (known[col[once]] >= 0)]
    same = known[row[judged]] == known[col[judged]]
    classes = data.num_classes
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


def auc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> Interval | None:
    """Chance that a positive example scores above a negative one, ties counting half; None without either.

    The variance is Hanley and McNeil's (Radiology 1982). It is taken on the logit scale, at an estimate drawn
    half an example towards 1/2, so that a handful of examples in perfect order still leaves doubt.
    """
    values, is_positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    ups, downs = int(is_positive.sum()), int((~is_positive).sum())
    if ups == 0 or downs == 0:
        return None
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # equal values share the mean of their ranks
    above = float(ranks[is_positive].sum()) - ups * (ups + 1) / 2
    found = above / (ups * downs)
    few = min(ups, downs)
    drawn = (found * few + 0.5) / (few + 1)
    q1, q2 = drawn / (2 - drawn), 2 * drawn**2 / (1 + drawn)
    variance = drawn * (1 - drawn) + (ups - 1) * (q1 - drawn**2) + (downs - 1) * (q2 - drawn**2)
    half = 1.96 * np.sqrt(variance / (ups * downs)) / (drawn * (1 - drawn))
    middle = np.log(drawn / (1 - drawn))
    low, high = (1 / (1 + np.exp(-(middle + sign * half))) for sign in (-1, 1))
    return Interval(found, min(float(low), found), max(float(high), found))


def share(hits: int, count: int) -> Interval | None:
    """A share with Wilson's interval; None of nothing."""
    if count == 0:
        return None
    p, z = hits / count, 1.96
    middle = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return Interval(p, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def shortlist(diagnosis: Diagnosis, most: int = 2) -> list[str]:
    """Interventions worth a training: the usual ones, and those that stand highest in the evidence."""
    best = [found.name for found in diagnosis.evidence if found.auc is not None and found.name not in ALWAYS]
    return [*ALWAYS, *best[:most]]


def advice(diagnosis: Diagnosis) -> list[str]:
    """Sentences for a reader, the recommendation last."""
    said = [_about_edges(diagnosis)]
    if diagnosis.random_edges is not None:
        noisy = "the graph looks noisy" if diagnosis.random_edges >= NOISY else "most edges look meant"
        said.append(
            f"About {diagnosis.random_edges:.0%} of the edges join nodes no more alike than random pairs: "
            f"{noisy}."
        )
    said.append(_recommendation(diagnosis))
    return said


def _about_edges(diagnosis: Diagnosis) -> str:
    if diagnosis.homophily is None:
        return "No edge joins two labelled nodes, so labels cannot judge any score."
    same = round(diagnosis.homophily.value * diagnosis.labelled_edges)
    few = min(same, diagnosis.labelled_edges - same) < FEW_EDGES
    doubt = "; too few to be sure of much" if few else ""
    return (
        f"{same} of {diagnosis.labelled_edges} edges between labelled nodes join one class "
        f"({diagnosis.homophily.value:.0%}, by chance {diagnosis.by_chance:.0%}){doubt}."
    )


def _recommendation(diagnosis: Diagnosis) -> str:
    if diagnosis.homophily is not None and diagnosis.homophily.high < 1.2 * diagnosis.by_chance:
        return (
            "Edges say little about the classes here: compare with a classifier that ignores them before "
            "trusting any graph network."
        )
    knowing = [found for found in diagnosis.evidence if found.knows]
    noisy = diagnosis.random_edges is not None and diagnosis.random_edges >= NOISY
    if knowing:
        best = knowing[0].name
        why = (
            f"its score ranks same-class edges first (AUC {knowing[0].auc.value:.2f})"
            if knowing[0].auc
            else ""
        )
        strategy = "e" if noisy else "i"
        return f"Try cat-{strategy}-{best}: {why}; or let validation choose: --intervention auto."
    if noisy:
        return (
            "No score is certain to know the classes, but many edges look random: try spread-trust (what "
            "plain `conjoint train` takes) or cat-e-smooth, or let validation choose: --intervention auto."
        )
    return "No score is certain to know the classes: let validation choose, --intervention auto."
