"""Random damage to a graph: what a run's `variant`, a table {name: options}, does before training.

Each function returns a changed copy and draws from the given generator alone. Edges are counted as undirected
pairs without loops: a share of 1 added to a graph of m pairs makes 2m. Labels, splits and the set of nodes
are never touched.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import to_csr, to_scipy

Integers = npt.NDArray[np.int64]
Change = Callable[[Graph, Mapping[str, Any], np.random.Generator], Graph]


def changed(data: Graph, variant: Mapping[str, Any], seed: int) -> Graph:
    """`data` after the named changes, one after the other, itself left as it was.

    What is random is drawn from the run's seed, so that ten seeds see ten draws of the noise, and every model
    of one seed sees the same graph.
    """
    for place, (name, options) in enumerate(variant.items()):
        if name not in VARIANTS:
            raise InputError(f"variant {name!r} is not known; there are {', '.join(VARIANTS)}")
        data = VARIANTS[name](data, options, np.random.default_rng([seed, place]))
    return data


def add_edges(data: Graph, share: float, rng: np.random.Generator) -> Graph:
    """Join round(share * m) pairs that were not joined, uniformly at random, in both directions."""
    nodes, pairs = data.num_nodes, _pairs(data)
    room = nodes * (nodes - 1) // 2 - len(pairs)
    wanted = round(share * len(pairs))
    if wanted > room // 2:
        raise InputError(f"add-edges share={share:g}: {wanted} new edges among {nodes} nodes; take fewer")
    if data.edge_weight is not None:
        raise InputError("add-edges: the graph has edge weights, and a made-up edge has none; leave them out")
    new = np.empty(0, dtype=np.int64)
    while len(new) < wanted:
        ends = np.sort(rng.integers(0, nodes, size=(2 * (wanted - len(new)) + 16, 2)), axis=1)
        drawn = ends[ends[:, 0] < ends[:, 1]] @ np.array([nodes, 1])
        drawn = np.concatenate([new, drawn[~np.isin(drawn, pairs)]])
        new = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:wanted]  # first come, first served
    low, high = new // nodes, new % nodes
    both = np.stack([np.concatenate([low, high]), np.concatenate([high, low])])
    return data.changed(edges=torch.cat([data.edge_index, torch.from_numpy(both)], dim=1))


def drop_edges(data: Graph, share: float, rng: np.random.Generator) -> Graph:
    """Remove round(share * m) pairs, uniformly at random, both directions and parallel edges with them."""
    nodes, pairs = data.num_nodes, _pairs(data)
    gone = rng.permutation(pairs)[: round(share * len(pairs))]
    keep = torch.from_numpy(~np.isin(_codes(data, nodes), gone))
    weight = None if data.edge_weight is None else data.edge_weight[keep]
    return data.changed(edges=data.edge_index[:, keep], edge_weight=weight)


def move_features(data: Graph, share: float, rng: np.random.Generator) -> Graph:
    """Move round(share * z) of the z non-zero features, each with its value, to random columns of their node.

    A column that held something before takes none, so each moved feature is wrong and each node keeps as many
    non-zeros as it had.
    """
    matrix = sp.csr_matrix(to_scipy(data.x))
    matrix.eliminate_zeros()
    count, width = matrix.nnz, matrix.shape[1]
    if np.diff(matrix.indptr).max(initial=0) > width // 2:
        raise InputError("move-features: a node has more non-zero features than zeros; they must be sparse")
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)).astype(np.int64)
    place = row * width + matrix.indices
    moving = rng.permutation(count)[: round(share * count)]
    taken, left = np.sort(place), moving
    while len(left):
        target = row[left] * width + rng.integers(0, width, len(left))
        free = ~np.isin(target, taken)
        first = np.zeros(len(left), dtype=bool)
        first[np.unique(target, return_index=True)[1]] = True
        settled = free & first
        place[left[settled]] = target[settled]
        taken, left = np.union1d(taken, target[settled]), left[~settled]
    moved = sp.csr_matrix((matrix.data, (place // width, place % width)), shape=matrix.shape)
    dense = data.x.layout != torch.sparse_csr
    return data.changed(
        given_x=torch.from_numpy(moved.toarray()).to(data.x.dtype) if dense else to_csr(moved)
    )


def _shared(change: Callable[[Graph, float, np.random.Generator], Graph], most: float) -> Change:
    """A change whose one option is a share."""

    def apply(data: Graph, options: Mapping[str, Any], rng: np.random.Generator) -> Graph:
        share: Any = options.get("share")
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if set(options) != {"share"} or not number or not 0 <= share <= most:
            raise InputError(f"variant options {dict(options)}: give share, a number from 0 to {most:g}")
        return change(data, float(share), rng)

    return apply


VARIANTS: dict[str, Change] = {
    "add-edges": _shared(add_edges, 100.0),
    "drop-edges": _shared(drop_edges, 1.0),
    "move-features": _shared(move_features, 1.0),
}


def _pairs(data: Graph) -> Integers:
    """Each undirected edge once, as low * nodes + high, sorted; loops left out."""
    nodes = data.num_nodes
    source, target = data.edge_index.numpy()
    return np.unique(_codes(data, nodes)[source != target])


def _codes(data: Graph, nodes: int) -> Integers:
    low, high = np.sort(data.edge_index.numpy().astype(np.int64), axis=0)
    return low * nodes + high
