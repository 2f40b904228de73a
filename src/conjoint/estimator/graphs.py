"""The graph as scikit-learn users have it: a matrix, an edge list, NetworkX, or nothing but X."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from ..data.tidy import tidy_edges
from ..errors import InputError

Ids = npt.NDArray[np.int64]


class NodeGraph:
    """An adjacency matrix that cross-validation can slice: a slice keeps the edges among its own nodes.

    scikit-learn slices a plain matrix by rows alone, which leaves columns that belong to no row.
    `GridSearchCV(CATClassifier(), grid).fit(X, y, graph=NodeGraph(A))` trains each fold on its part of A.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_array(matrix)
        self.shape: tuple[int, int] = self.matrix.shape
        if self.shape[0] != self.shape[1]:
            raise InputError(f"matrix: its shape is {self.shape}; give a square adjacency matrix")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> "NodeGraph":
        rows = key[0] if isinstance(key, tuple) else key  # scikit-learn asks for [rows, ...]
        return NodeGraph(self.matrix[rows][:, rows])


Floats = npt.NDArray[np.float64]


class Edges(NamedTuple):
    """As the user gave them: pairs of rows, and a positive strength each (None: all alike)."""

    source: Ids
    target: Ids
    weight: Floats | None = None


class Graph(NamedTuple):
    """Undirected edges between the rows of X, both directions, and what the user calls the nodes."""

    edge_index: Tensor  # [2, entries]
    edge_weight: Tensor | None  # [entries]
    names: npt.NDArray[Any]  # [nodes]


def read_graph(graph: Any, num_nodes: int, index: Any = None) -> Graph:
    """Any accepted form of a graph over the rows of X; self-loops are dropped, the layers add their own.

    `index` is the index of X where X is a table; names of NetworkX nodes are looked up in it.
    """
    names = _names(num_nodes, index)
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        edges, names = _from_networkx(graph, num_nodes, index)
    elif isinstance(graph, NodeGraph) or sp.issparse(graph):
        edges = _from_matrix(graph.matrix if isinstance(graph, NodeGraph) else graph, num_nodes)
    else:
        edges = _from_array(graph, num_nodes)
    return Graph(*tidy_edges(edges.source, edges.target, num_nodes, edges.weight, []), names)


def _names(num_nodes: int, index: Any) -> npt.NDArray[Any]:
    return np.arange(num_nodes) if index is None else np.asarray(index)


def _from_networkx(graph: Any, num_nodes: int, index: Any) -> tuple[Edges, npt.NDArray[Any]]:
    nodes = list(graph.nodes)
    if len(nodes) != num_nodes:
        raise InputError(f"graph: it has {len(nodes)} nodes, X has {num_nodes} rows; give one row per node")
    order = nodes
    # Rows follow the table's index, or the numbers that nodes carry, before the order of insertion.
    for candidate in (None if index is None else list(index), range(num_nodes)):
        if candidate is not None and set(candidate) == set(nodes):
            order = list(candidate)
            break
    row_of = {node: row for row, node in enumerate(order)}
    found = [(row_of[a], row_of[b], weight) for a, b, weight in graph.edges(data="weight", default=1)]
    pairs = np.array([(a, b) for a, b, _ in found], dtype=np.int64).reshape(-1, 2)
    names = np.empty(num_nodes, dtype=object)
    names[:] = order
    simple = all(isinstance(name, int) for name in order) or all(isinstance(name, str) for name in order)
    return _edges(pairs.T, [weight for *_, weight in found]), np.array(order) if simple else names


def _from_matrix(matrix: Any, num_nodes: int) -> Edges:
    if matrix.shape[0] == num_nodes != matrix.shape[1]:
        raise InputError(
            f"graph: a matrix of shape {matrix.shape} for {num_nodes} rows of X; cross-validation slices "
            "rows alone, so pass graph=NodeGraph(A) there, elsewhere a square matrix"
        )
    if matrix.shape != (num_nodes, num_nodes):
        raise InputError(
            f"graph: a matrix of shape {matrix.shape} for {num_nodes} rows of X; "
            "give a square matrix with one row and one column per row of X"
        )
    return _stored(matrix)


def _stored(matrix: Any) -> Edges:
    coo = sp.coo_array(matrix)
    kept = coo.data != 0
    return _edges(np.stack([coo.row[kept], coo.col[kept]]), coo.data[kept])


def _edges(ends: npt.NDArray[Any], weight: npt.ArrayLike) -> Edges:
    strength = np.asarray(weight, dtype=np.float64)
    if not np.isfinite(strength).all() or (strength <= 0).any():
        raise InputError(
            "graph: an edge weight is negative, NaN or infinite; a weight says how strong a link is, so give "
            "numbers above 0 or leave the edge out"
        )
    source, target = ends.astype(np.int64)
    return Edges(source, target, None if (strength == 1).all() else strength)


def _from_array(graph: Any, num_nodes: int) -> Edges:
    if isinstance(getattr(graph, "edge_index", None), Tensor):  # PyG's Data
        graph = graph.edge_index
    if isinstance(graph, Tensor):
        graph = to_edge_index(graph)[0] if is_torch_sparse_tensor(graph) else graph
        graph = graph.detach().cpu().as_subclass(Tensor).numpy()
    pairs = np.asarray(graph)
    if pairs.ndim == 2 and pairs.shape[0] == 2 and pairs.dtype.kind in "iu":
        if pairs.size and (pairs.min() < 0 or pairs.max() >= num_nodes):
            bad = int(pairs.min() if pairs.min() < 0 else pairs.max())
            raise InputError(
                f"graph: an edge names node {bad}, but X has rows 0 to {num_nodes - 1}; in cross-validation "
                "pass graph=NodeGraph(A)"
            )
        return _edges(pairs, np.ones(pairs.shape[1]))
    if pairs.ndim == 2 and pairs.shape == (num_nodes, num_nodes) and pairs.dtype.kind in "biuf":
        return _stored(pairs)
    turned = "pairs stand in columns here: pass graph.T, or " if pairs.shape[1:] == (2,) else ""
    raise InputError(
        f"graph: {type(graph).__name__} of shape {pairs.shape} and type {pairs.dtype}; {turned}give a SciPy "
        "adjacency matrix, an integer edge index of shape [2, edges], a NetworkX graph, or None"
    )


def nearest(to: Any, x: Any, count: int, metric: str, *, same: bool = False) -> tuple[Ids, Ids]:
    """(row of x, row of `to`) for the `count` nearest of each; a row is not its own neighbour if `same`."""
    from sklearn.neighbors import NearestNeighbors

    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"n_neighbors={count!r}: give a whole number, 1 or more")
    available = to.shape[0] - int(same)
    search = NearestNeighbors(n_neighbors=min(int(count), available), metric=metric).fit(to)
    found = search.kneighbors(None if same else x, return_distance=False)
    return np.repeat(np.arange(found.shape[0]), found.shape[1]), found.ravel().astype(np.int64)


def nearest_graph(x: Any, count: int, metric: str, index: Any = None) -> Graph:
    """Edges between each row of x and its `count` nearest others."""
    names = _names(x.shape[0], index)
    if x.shape[0] == 1:
        return Graph(torch.empty(2, 0, dtype=torch.int64), None, names)
    source, target = nearest(x, x, count, metric, same=True)
    return Graph(*tidy_edges(source, target, x.shape[0], None, []), names)


class Links(NamedTuple):
    """Who new nodes listen to: training nodes, and each other."""

    known: Edges  # from training node to new node
    among: Graph


def nearest_links(known_x: Any, new_x: Any, count: int, metric: str) -> Links:
    """Each new node listens to the training nodes nearest to it, and to no other new node."""
    new, known = nearest(known_x, new_x, count, metric)
    nobody = Graph(torch.empty(2, 0, dtype=torch.int64), None, np.arange(new_x.shape[0]))
    return Links(Edges(known, new), nobody)


def read_links(graph: Any, num_new: int, num_known: int) -> Links:
    """A matrix with a row per new node and a column per training node, then one per new node."""
    matrix = sp.csr_array(graph)
    known = _stored(matrix[:, :num_known])
    return Links(Edges(known.target, known.source, known.weight), read_graph(matrix[:, num_known:], num_new))
