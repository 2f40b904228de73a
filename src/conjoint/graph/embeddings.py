"""Where a node stands in the graph, as a row of numbers made from the edges alone.

Eigenvectors of the normalised Laplacian, NetMF and DeepWalk, to be joined with features; singular vectors and
degrees in place of features. No dense nodes x nodes matrix; every function is deterministic in its arguments.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

from ..errors import InputError
from .proximity import matrix_of, one_thread, scaled
from .sparse import is_sparse, stored, to_csr, to_scipy

Floats = npt.NDArray[np.float64]
MAX_DEGREE_COLUMNS = 4096


@one_thread
def laplacian_eigenvectors(edge_index: Tensor, num_nodes: int, k: int = 64, seed: int = 0) -> Tensor:
    """The `k` smoothest eigenvectors of I - D^-1/2 A D^-1/2 with an eigenvalue above 0. -> [nodes, k]

    The eigenvalue 0 comes once per connected component and only marks the nodes of that component; those
    vectors are left out, so that `k` columns mean the same on a graph of one part and of a hundred.
    """
    _, vectors = _leading_eigenpairs(_undirected(edge_index, num_nodes), _checked(k, num_nodes, "k"), seed)
    return _signed(vectors)


@one_thread
def netmf(
    edge_index: Tensor,
    num_nodes: int,
    dim: int = 128,
    *,
    window: int = 10,
    negative: float = 1.0,
    rank: int = 256,
    seed: int = 0,
    block: int = 1024,
) -> Tensor:
    """NetMF for large windows (Qiu et al., WSDM 2018, Algorithm 4). -> [nodes, dim]

    DeepWalk in the limit factorises log max(M, 1) with
    M = vol / negative * D^-1/2 (1/T sum_{r=1..T} S^r) D^-1/2, S the normalised adjacency, T the window.
    S is replaced by its `rank` leading eigenpairs. The logarithm destroys the low rank, so the matrix is
    made `block` rows at a time and multiplied on the spot (a randomised SVD); it is never stored.
    """
    dim = _checked(dim, num_nodes, "dim")
    graph = _undirected(edge_index, num_nodes)
    degree = graph.sum(axis=1)
    values, vectors = _leading_eigenpairs(graph, min(rank, num_nodes - 1), seed)
    values = np.maximum(values, 0.0)  # as in the paper's code: the filter is only meant for smooth directions
    mean_power = np.mean([values**r for r in range(1, window + 1)], axis=0)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    factor = (vectors * scale[:, None] * np.sqrt(mean_power)).astype(np.float32)
    volume = degree.sum() / negative
    part = connected_components(graph, directed=False)[1]
    part_volume = np.bincount(part, weights=degree)
    constant = np.divide(volume, part_volume, out=np.zeros_like(part_volume), where=part_volume > 0)

    def rows(start: int) -> npt.NDArray[np.float32]:
        stop = min(start + block, num_nodes)
        m = np.float32(volume) * (factor[start:stop] @ factor.T)
        # Eigenvalue 1, once per component: between two nodes of a component it adds volume / its volume.
        m += (part[start:stop, None] == part[None, :]) * constant[part[start:stop], None].astype(np.float32)
        return np.log(np.maximum(m, 1.0, out=m), out=m)

    def times(right: Floats) -> Floats:
        right = right.astype(np.float32)
        return np.concatenate([rows(i) @ right for i in range(0, num_nodes, block)]).astype(np.float64)

    basis = np.random.default_rng(seed).standard_normal((num_nodes, min(dim + 16, num_nodes)))
    for _ in range(3):
        basis = np.linalg.qr(times(basis))[0]
    inner = basis.T @ times(basis)
    strength, inside = np.linalg.eigh((inner + inner.T) / 2)
    # The matrix is symmetric, so its singular pairs are its eigenpairs up to sign.
    order = np.argsort(-np.abs(strength))[:dim]
    return _signed((basis @ inside[:, order]) * np.sqrt(np.abs(strength[order])))


def deepwalk(
    edge_index: Tensor,
    num_nodes: int,
    dim: int = 128,
    *,
    walks_per_node: int = 10,
    walk_length: int = 40,
    window: int = 5,
    negative: int = 5,
    epochs: int = 1,
    seed: int = 0,
) -> Tensor:
    """DeepWalk (Perozzi et al., KDD 2014): random walks read as sentences by skip-gram. -> [nodes, dim]

    Needs gensim. One worker thread, because gensim's result depends on how threads race.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise InputError(
            "deepwalk: the skip-gram library gensim is not installed; pip install 'conjoint[embeddings]'"
        ) from None
    walks = random_walks(edge_index, num_nodes, walks_per_node, walk_length, seed)
    names = np.array([str(node) for node in range(num_nodes)], dtype=object)
    sentences = [names[walk].tolist() for walk in walks]
    options = {"window": window, "negative": negative, "epochs": epochs, "seed": seed}
    model = Word2Vec(sentences, vector_size=dim, sg=1, min_count=0, workers=1, **options)
    return _tensor(model.wv[names.tolist()])


def random_walks(
    edge_index: Tensor, num_nodes: int, walks_per_node: int, length: int, seed: int
) -> npt.NDArray[np.int64]:
    """Uniform walks, `walks_per_node` from every node in shuffled order. -> [walks, length]"""
    graph = _undirected(edge_index, num_nodes)
    degree = np.diff(graph.indptr)
    generator = np.random.default_rng(seed)
    starts = [generator.permutation(num_nodes) for _ in range(walks_per_node)]
    walks = np.empty((num_nodes * walks_per_node, length), dtype=np.int64)
    walks[:, 0] = np.concatenate(starts)
    for step in range(1, length):
        here = walks[:, step - 1]
        pick = (generator.random(len(here)) * degree[here]).astype(np.int64)
        alone = degree[here] == 0
        entry = np.where(alone, 0, graph.indptr[here] + pick)
        walks[:, step] = np.where(alone, here, graph.indices[entry] if graph.nnz else here)
    return walks


def join(x: Tensor, embedding: Tensor, scale: float = 1.0) -> Tensor:
    """[x | embedding], CSR if x is. The embedding is first brought to `scale` times the root mean square
    length of x's rows, so that what the two weigh does not depend on the units of either."""
    if x.size(0) != embedding.size(0):
        raise InputError(
            f"embedding: it has {embedding.size(0)} rows, the features {x.size(0)}; use the same graph"
        )
    ratio = (stored(x).square().sum() / embedding.square().sum().clamp(min=1e-30)).sqrt()
    embedding = embedding * scale * torch.where(ratio > 0, ratio, torch.ones_like(ratio))
    if not is_sparse(x):
        return torch.cat([x, embedding.to(x.dtype)], dim=1)
    return to_csr(sp.hstack([to_scipy(x), sp.csr_matrix(embedding.numpy())], format="csr"))


def spectral_features(edge_index: Tensor, num_nodes: int, k: int, seed: int = 0) -> Tensor:
    """Leading ``k`` left singular vectors of D^-1/2 A D^-1/2, each node's row scaled to length 1.

    Without the row scaling a node's length follows its degree and hides its direction: logistic regression on
    ogbn-arxiv falls from 59% to 33%. Nodes without edges keep a zero row.
    """
    from sklearn.utils.extmath import randomized_svd  # takes a second to import

    if not 0 < k < num_nodes:
        raise InputError(f"spectral:{k} needs 0 < k < {num_nodes}, the number of nodes")
    row, col = edge_index.cpu().numpy()
    graph = sp.csr_array((np.ones(len(row), dtype=np.float32), (row, col)), shape=(num_nodes, num_nodes))
    degree = graph.sum(axis=1)
    vectors = randomized_svd(scaled(graph, np.maximum(degree, 1)), k, n_iter=4, random_state=seed)[0]
    vectors[degree == 0] = 0
    return F.normalize(_tensor(vectors), dim=1)


def degree_features(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    """One-hot of the node's degree; degrees of ``k`` - 1 and more share the last column."""
    if k < 2:
        raise InputError(f"degree:{k} needs k of 2 or more: degrees from k-1 up share one column")
    degree = torch.bincount(edge_index[0].cpu(), minlength=num_nodes)
    return F.one_hot(degree.clamp(max=k - 1), k).to(torch.float32)


def structural_features(name: str, edge_index: Tensor, num_nodes: int, seed: int = 0) -> Tensor:
    """Features by name: ``spectral:K`` (K vectors) or ``degree:K`` (K columns)."""
    kind, _, size = name.partition(":")
    if kind not in ("spectral", "degree") or not size.isascii() or not size.isdigit():
        raise InputError(f"features={name!r} is not known; write 'spectral:128' or 'degree:32'")
    if kind == "spectral":
        return spectral_features(edge_index, num_nodes, int(size), seed)
    if int(size) > MAX_DEGREE_COLUMNS:
        raise InputError(f"features={name!r} asks for too many columns; take {MAX_DEGREE_COLUMNS} or fewer")
    return degree_features(edge_index, num_nodes, int(size))


def _leading_eigenpairs(graph: sp.csr_array, k: int, seed: int) -> tuple[Floats, Floats]:
    """The `k` largest eigenvalues of D^-1/2 A D^-1/2 below the trivial 1, and their vectors, largest first.

    The trivial vectors (D^1/2 on one component, 0 elsewhere) are known; moving them out of the way beforehand
    spares Lanczos an eigenvalue that may repeat hundreds of times, which it finds badly.
    """
    num_nodes = graph.shape[0]
    degree = graph.sum(axis=1)
    normalised = scaled(graph, degree)
    parts, part = connected_components(graph, directed=False)
    trivial = np.sqrt(degree) / np.sqrt(np.maximum(np.bincount(part, weights=degree), 1e-300))[part]

    def deflated(v: Floats) -> Floats:
        v = v.ravel()
        along = np.bincount(part, weights=trivial * v, minlength=parts)
        return normalised @ v - 3.0 * trivial * along[part]  # from 1 to -2, below every other eigenvalue

    operator: Any = LinearOperator((num_nodes, num_nodes), matvec=deflated, dtype=np.float64)
    if k >= num_nodes - 1 or num_nodes <= 3 * k:  # Lanczos needs room; so small a matrix may be dense
        values, vectors = np.linalg.eigh(operator @ np.eye(num_nodes))
    else:
        start = np.random.default_rng(seed).standard_normal(num_nodes)
        values, vectors = eigsh(operator, k, which="LA", v0=start, tol=1e-6)
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _undirected(edge_index: Tensor, num_nodes: int) -> sp.csr_array:
    return matrix_of(edge_index, num_nodes, loops=False, dtype=np.float64)


def _signed(vectors: Floats) -> Tensor:
    """A vector's sign is free: the entry of largest size is made positive."""
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return _tensor(vectors * np.where(peak < 0, -1.0, 1.0))


def _checked(size: int, num_nodes: int, name: str) -> int:
    if not 0 < size < num_nodes:
        raise InputError(f"{name}={size}: the graph has {num_nodes} nodes; choose 0 < {name} < {num_nodes}")
    return size


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
