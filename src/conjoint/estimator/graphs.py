"""The graph as scikit-learn users have it: a matrix, an edge list, NetworkX, or nothing but X.

Also which rows of a later X are nodes of it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from ..data.columns import Place
from ..data.from_tables import Columns
from ..errors import InputError, check_whole
from ..graph.adjacency import tidy_edges
from ..graph.graph import Graph
from ..graph.sparse import is_sparse, to_csr, to_scipy

Array = npt.NDArray[Any]
_CHUNK = 4096


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


def read_graph(given: Any, x: Tensor, index: Any = None) -> Graph:
    """The rows of x with any accepted form of edges between them; self-loops are dropped.

    `index` is the index of X where X is a table; names of nodes are looked up in it.
    """
    if _is_table(given) and given.shape != (x.size(0), x.size(0)):
        given = _from_table(given, x.size(0), index)
    elif isinstance(given, Sequence) and (pairs := _listed_pairs(given)) is not None:
        given = _from_pairs(*pairs, None, x.size(0), index)
    if hasattr(given, "adjacency") and hasattr(given, "nodes"):
        given, index = _from_networkx(given, x.size(0), index)
    return _tidy(x, _matrix(given, x.size(0)), index)


def nearest_graph(x: Tensor, count: int, metric: str, index: Any = None) -> Graph:
    """Edges between each row of x and its `count` nearest others."""
    return _tidy(x, _nearest(x, None, count, metric), index)


def joined_by_nearest(known: Graph, new_x: Tensor, count: int, metric: str) -> Graph:
    """The graph with new nodes, each of which receives from the known nodes nearest to it."""
    alone = sp.coo_array((new_x.size(0), new_x.size(0)))
    return _joined(known, _tidy(new_x, alone), _nearest(known.x, new_x, count, metric))


def joined_by_matrix(known: Graph, new_x: Tensor, matrix: Any) -> Graph:
    """The graph with new nodes; `matrix` has a row for each and a column for every node, known ones first."""
    whole = sp.csr_array(matrix)
    among = read_graph(whole[:, known.num_nodes :], new_x)
    return _joined(known, among, sp.coo_array(whole[:, : known.num_nodes]))


def as_array(x: Tensor) -> Any:
    """Features as scikit-learn takes them: SciPy CSR or a dense array."""
    return to_scipy(x) if is_sparse(x) else x.numpy()


def _tidy(x: Tensor, matrix: sp.coo_array, index: Any = None) -> Graph:
    source, target, weight = _edges(matrix)
    edges, edge_weight = tidy_edges(source, target, x.size(0), weight, [])
    ids = None if index is None else np.asarray(index)
    return Graph(given_x=x, y=torch.full((x.size(0),), -1), edges=edges, edge_weight=edge_weight, ids=ids)


def _joined(known: Graph, new: Graph, into: sp.coo_array) -> Graph:
    """One graph, known nodes first. No edge leads from a new node to a known one. into: [new, known]"""
    target, source, weight = _edges(into)
    between = torch.from_numpy(np.stack([source, target + known.num_nodes]))
    edges = [known.edge_index, between, new.edge_index + known.num_nodes]
    added = None if weight is None else torch.from_numpy(weight).float()
    weights = [known.edge_weight, added, new.edge_weight]
    each = [torch.ones(e.size(1)) if w is None else w for e, w in zip(edges, weights, strict=True)]
    sparse = is_sparse(known.x)
    x = to_csr(sp.vstack([to_scipy(known.x), to_scipy(new.x)])) if sparse else torch.cat([known.x, new.x])
    return Graph(
        given_x=x,
        y=torch.cat([known.y, new.y]),
        edges=torch.cat(edges, dim=1),
        edge_weight=None if all(one is None for one in weights) else torch.cat(each),
        class_names=known.class_names,
    )


def _edges(matrix: sp.coo_array) -> tuple[Array, Array, Array | None]:
    """(row, column, weight) of each edge; no weights where all are 1."""
    kept = matrix.data != 0
    weight = matrix.data[kept].astype(np.float64)
    if not np.isfinite(weight).all() or (weight <= 0).any():
        raise InputError(
            "graph: an edge weight is negative, NaN or infinite; a weight says how strong a link is, so give "
            "numbers above 0 or leave the edge out"
        )
    row, col = (part[kept].astype(np.int64) for part in (matrix.row, matrix.col))
    return row, col, None if (weight == 1).all() else weight


def _from_networkx(graph: Any, num_nodes: int, index: Any) -> tuple[sp.coo_array, Array]:
    nodes = list(graph.nodes)
    if len(nodes) != num_nodes:
        raise InputError(f"graph: it has {len(nodes)} nodes, X has {num_nodes} rows; give one row per node")
    # Rows follow the table's index, or the numbers that nodes carry, before the order of insertion.
    named = [] if index is None else [list(index)]
    order = next(one for one in (*named, list(range(num_nodes)), nodes) if set(one) == set(nodes))
    row_of = {node: row for row, node in enumerate(order)}
    found = [(row_of[a], row_of[b], weight) for a, b, weight in graph.edges(data="weight", default=1)]
    source, target, weight = np.array(found, dtype=np.float64).reshape(-1, 3).T
    ends = source.astype(np.int64), target.astype(np.int64)
    names = np.empty(num_nodes, dtype=object)
    names[:] = order
    simple = all(isinstance(name, int) for name in order) or all(isinstance(name, str) for name in order)
    matrix = sp.coo_array((weight, ends), shape=(num_nodes, num_nodes))
    return matrix, np.array(order) if simple else names


def _is_table(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "to_numpy")


def _from_table(table: Any, num_nodes: int, index: Any) -> sp.coo_array:
    """A pandas or polars table of edges: their ends by their usual names, else the first two columns."""
    names = [str(name) for name in table.columns]
    if len(names) < 2:
        raise InputError(f"graph: a table with the columns {names}; edges need two, source and target")
    by_name = dict(zip(names, table.columns, strict=True))
    one, other = Columns().edge_ends(names, Place("graph"), [])
    weight = np.asarray(table[by_name["weight"]], dtype=np.float64) if "weight" in names else None
    source, target = (np.asarray(table[by_name[name]]) for name in (one, other))
    return _from_pairs(source, target, weight, num_nodes, index)


def _listed_pairs(given: Sequence[Any]) -> tuple[Array, Array] | None:
    """The ends of a list of pairs. Two lists of equal length are an edge index, unless they are tuples."""
    pairs = [one for one in given if isinstance(one, tuple | list) and len(one) == 2]
    if not pairs or len(pairs) < len(given) or (len(pairs) == 2 and not isinstance(pairs[0], tuple)):
        return None
    source, target = (np.empty(len(pairs), dtype=object) for _ in range(2))
    for k, pair in enumerate(pairs):  # one by one: a node may be called by a tuple
        source[k], target[k] = pair
    return source, target


def _from_pairs(
    source: Array, target: Array, weight: Array | None, num_nodes: int, index: Any
) -> sp.coo_array:
    """[nodes, nodes] from the names of each edge's ends: those of X's index, or numbers of its rows."""
    names = list(range(num_nodes)) if index is None else list(index)
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) < len(names):
        raise InputError("graph: the index of X names a row twice, so no edge can name it; make it unique")
    ends = []
    for end in (source, target):
        rows = np.fromiter((row_of.get(name, -1) for name in end.tolist()), np.int64, len(end))
        if (rows < 0).any():
            own = f"X has rows 0 to {num_nodes - 1}"
            where = own if index is None else f"the index of X has none; it begins with {names[0]!r}"
            raise InputError(f"graph: an edge names node {end[rows < 0][0]!r}, but {where}")
        ends.append(rows)
    data = np.ones(len(source)) if weight is None else weight
    return sp.coo_array((data, tuple(ends)), shape=(num_nodes, num_nodes))


def _matrix(given: Any, num_nodes: int) -> sp.coo_array:
    """[nodes, nodes] from a matrix, an array or pairs of rows."""
    given = given.matrix if isinstance(given, NodeGraph) else given
    if isinstance(getattr(given, "edge_index", None), Tensor):  # PyG's Data
        given = given.edge_index
    if isinstance(given, Tensor):
        given = to_edge_index(given)[0] if is_torch_sparse_tensor(given) else given
        given = given.detach().cpu().as_subclass(Tensor).numpy()
    if sp.issparse(given):
        if given.shape != (num_nodes, num_nodes):
            sliced = "cross-validation slices rows alone, so pass graph=NodeGraph(A) there, elsewhere"
            raise InputError(
                f"graph: a matrix of shape {given.shape} for {num_nodes} rows of X; "
                f"{sliced if given.shape[0] == num_nodes else 'give'} a square matrix with one row and one "
                "column per row of X"
            )
        return sp.coo_array(given)
    pairs = np.asarray(given)
    if pairs.ndim == 2 and pairs.shape[1] == 2 != pairs.shape[0] and pairs.dtype.kind in "iu":
        pairs = pairs.T  # a row for each edge
    if pairs.ndim == 2 and pairs.shape[0] == 2 and pairs.dtype.kind in "iu":
        if pairs.size and (pairs.min() < 0 or pairs.max() >= num_nodes):
            bad = int(pairs.min() if pairs.min() < 0 else pairs.max())
            raise InputError(
                f"graph: an edge names node {bad}, but X has rows 0 to {num_nodes - 1}; in cross-validation "
                "pass graph=NodeGraph(A)"
            )
        return sp.coo_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(num_nodes, num_nodes))
    if pairs.shape == (num_nodes, num_nodes) and pairs.dtype.kind in "biuf":
        return sp.coo_array(pairs)
    raise InputError(
        f"graph: {type(given).__name__} of shape {pairs.shape} and type {pairs.dtype}; give a SciPy "
        "adjacency matrix, an integer edge index of shape [2, edges], pairs, a table of edges, a NetworkX "
        "graph, or None"
    )


def _nearest(to: Tensor, x: Tensor | None, count: int, metric: str) -> sp.coo_array:
    """1 from each row of x to the `count` nearest of `to`; None: from each of `to`, itself left out."""
    check_whole("n_neighbors", count, 1)
    found = min(int(count), to.size(0) - (x is None))
    if found == 0:
        return sp.coo_array((1, 1))
    search = NearestNeighbors(n_neighbors=found, metric=metric).fit(as_array(to))
    return sp.coo_array(search.kneighbors_graph(None if x is None else as_array(x)))


def row_keys(x: Any) -> list[bytes]:
    """A short digest per row, the same for a dense and a sparse row of equal numbers."""
    keys: list[bytes] = []
    for start in range(0, x.shape[0], _CHUNK):
        part = sp.csr_array(x[start : start + _CHUNK])
        part.sum_duplicates()
        part.eliminate_zeros()
        for begin, end in zip(part.indptr[:-1], part.indptr[1:], strict=True):
            digest = blake2b(part.indices[begin:end].astype(np.int64).tobytes(), digest_size=16)
            digest.update(part.data[begin:end].astype(np.float32).tobytes())
            keys.append(digest.digest())
    return keys


def means_over_equals(asked: Sequence[bytes], known: Sequence[bytes]) -> sp.csr_array:
    """A matrix that gives each row the mean over the known rows of the same key. [asked, known]

    Nodes with equal features cannot be told apart by them. A row without any such node is empty.
    """
    nodes: dict[bytes, list[int]] = {}
    for node, key in enumerate(known):
        nodes.setdefault(key, []).append(node)
    found = [nodes.get(key, []) for key in asked]
    count = np.array([len(one) for one in found])
    share = np.repeat(1.0 / np.maximum(count, 1), count).astype(np.float32)
    column = np.array([node for one in found for node in one], dtype=np.int64)
    return sp.csr_array((share, column, np.append(0, count.cumsum())), shape=(len(asked), len(known)))
