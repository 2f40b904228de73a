"""Similarity of input features as an intervention (the paper's supplementary FS)."""

from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import InputError
from ...graph.adjacency import Adjacency
from ...graph.sparse import to_scipy
from .base import Intervention


class FeatureSimilarity(Intervention):
    """C_ij = cosine of the input features of i and j; nothing to learn. Features may be sparse CSR.

    The scores are kept graph by graph for as long as the same features come in: an epoch asks for those of
    the training nodes' part and of the validation nodes' part, again and again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: WeakKeyDictionary[Adjacency, tuple[Tensor, int, Tensor]] = WeakKeyDictionary()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if x is None:
            raise InputError("x: FeatureSimilarity needs the input features; pass x")
        if x.requires_grad:
            return edge_cosine(adj, x)
        kept = self._kept.get(adj)
        if kept is not None and kept[0] is x and kept[1] == x._version:
            return kept[2]
        score = edge_cosine(adj, x)
        self._kept[adj] = (x, x._version, score)
        return score

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        """Features of two kinds can be compared where they mean the same, as words of one vocabulary do."""
        if x_dst is None or x_src.size(1) != x_dst.size(1):
            found = "none" if x_dst is None else str(x_dst.size(1))
            raise InputError(
                f"intervention: FeatureSimilarity compares features column by column, but sources have "
                f"{x_src.size(1)} and targets {found}; give this relation one number per edge instead"
            )
        return edge_cosine(adj, x_src, x_dst)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": WeakKeyDictionary()}  # copies carry no graph along


def edge_cosine(adj: Adjacency, x: Tensor, x_dst: Tensor | None = None) -> Tensor:
    """Cosine of i's and j's features for every entry; 0 where a row is all zeros. -> [entries]

    `x_dst` holds the features of the listeners where those are nodes of another kind.
    """
    x_dst = x if x_dst is None else x_dst
    if torch.sparse_csr in (x.layout, x_dst.layout):
        return _sparse_cosine(adj, x, x_dst)
    unit = F.normalize(x, dim=-1)
    unit_dst = unit if x_dst is x else F.normalize(x_dst, dim=-1)
    step = max(1, (1 << 22) // max(1, x.size(1)))  # bounds the gathered floats
    spans = range(0, adj.num_entries, step)
    parts = [(unit_dst[adj.row[k : k + step]] * unit[adj.col[k : k + step]]).sum(-1) for k in spans]
    return torch.cat(parts) if parts else x.new_zeros(0)


def _sparse_cosine(adj: Adjacency, x: Tensor, x_dst: Tensor) -> Tensor:
    speaking, speaking_norm = _rows_and_norms(x)
    listening, listening_norm = (speaking, speaking_norm) if x_dst is x else _rows_and_norms(x_dst)
    row, col = adj.row.cpu().numpy(), adj.col.cpu().numpy()
    step = 1 << 18
    parts = []
    for k in range(0, adj.num_entries, step):
        i, j = row[k : k + step], col[k : k + step]
        dot = (listening[i] * speaking[j]).sum(axis=1)
        parts.append(torch.from_numpy(dot / (listening_norm[i] * speaking_norm[j])))
    score = torch.cat(parts) if parts else torch.zeros(0)
    return score.to(dtype=x.dtype, device=x.device)


def _rows_and_norms(x: Tensor) -> tuple[sp.csr_array, np.ndarray]:
    matrix = sp.csr_array(to_scipy(x), dtype=np.float64)
    norm = np.sqrt((matrix * matrix).sum(axis=1))
    norm[norm == 0.0] = 1.0
    return matrix, norm
