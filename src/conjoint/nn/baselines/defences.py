"""Defences against wrong edges: GCN on a graph that was cleaned beforehand."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ...errors import InputError
from .gcn import GCN, GCNSettings
from .settings import Settings


@dataclass(frozen=True)
class Pruning(Settings):
    """Mixed into the settings of a model that reads only the edges whose ends are alike enough.

    Wu et al., IJCAI 2019: drop edges whose ends' features have a Jaccard similarity below `threshold`.
    """

    threshold: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.threshold <= 1.0:
            raise InputError(f"threshold: {self.threshold}; a Jaccard similarity lies between 0 and 1")


@dataclass(frozen=True)
class GCNJaccardSettings(GCNSettings, Pruning):
    pass


@dataclass(frozen=True)
class GCNSVDSettings(GCNSettings):
    rank: int = 50


@dataclass(frozen=True, eq=False)
class LowRankGraph:
    """D^-1/2 (U V^T + I) D^-1/2, never multiplied out. D has the row sums of the middle, at least 1."""

    left: Tensor  # [nodes, rank], singular values included
    right: Tensor  # [nodes, rank]
    scale: Tensor  # [nodes, 1], D^-1/2

    def gather(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """One step of message passing in O(nodes * rank * columns). [nodes, f] -> [nodes, f]"""
        scaled = self.scale * x
        return self.scale * (self.left @ (self.right.t() @ scaled) + scaled)


class GCNSVD(GCN):
    """Entezari et al., WSDM 2020: GCN on the best approximation of the adjacency of a given rank.

    Random edges live in the small singular values, so a low rank leaves them out. The approximation stays
    factorised: time and memory grow with nodes * rank, not with the square of the nodes.
    """

    def __init__(self, features: int, classes: int, settings: GCNSVDSettings | None = None) -> None:
        settings = settings or GCNSVDSettings()
        super().__init__(features, classes, settings)
        self.rank = settings.rank
        self._seen: tuple[Tensor, int, int, LowRankGraph] | None = None

    def prepare(  # type: ignore[override]  # another graph than GCN's, with the same `gather`
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
    ) -> LowRankGraph:
        """The factors of the graph; those of the last one are kept, as they take a while."""
        if self._seen is not None and edge_weight is None:
            seen, version, nodes, kept = self._seen
            if seen is edge_index and (version, nodes) == (edge_index._version, num_nodes):
                return kept
        made = low_rank_graph(edge_index, num_nodes, self.rank, edge_weight)
        if edge_weight is None:
            self._seen = (edge_index, edge_index._version, num_nodes, made)
        return made

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_seen": None}  # copies carry no graph along


def low_rank_graph(
    edge_index: Tensor, num_nodes: int, rank: int, edge_weight: Tensor | None = None
) -> LowRankGraph:
    """The truncated SVD of A (its row listens to its column), parallel edges counted once."""
    from scipy.sparse.linalg import svds

    source, target = edge_index.cpu().numpy()
    values = np.ones(len(source)) if edge_weight is None else edge_weight.double().cpu().numpy()
    matrix = sp.csr_matrix((values, (target, source)), shape=(num_nodes, num_nodes))
    if edge_weight is None:
        matrix.data[:] = 1.0
    rank = min(rank, num_nodes)
    if num_nodes <= 3 * rank:  # Lanczos needs room; so small a matrix may be dense
        u, s, vt = np.linalg.svd(matrix.toarray())
        u, s, vt = u[:, :rank], s[:rank], vt[:rank]
    else:
        u, s, vt = svds(matrix, rank, v0=np.random.default_rng(0).standard_normal(num_nodes))
    left, right = u * s, vt.T
    degree = np.maximum(left @ right.sum(axis=0) + 1.0, 1.0)
    parts = (left, right, 1.0 / np.sqrt(degree)[:, None])
    made = (torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32)) for part in parts)
    return LowRankGraph(*(part.to(edge_index.device) for part in made))
