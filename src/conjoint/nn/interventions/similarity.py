"""Similarity of vectors that nodes come with: their input features, or any embedding."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import InputError
from ...graph.adjacency import Adjacency
from ...graph.sparse import to_scipy
from .. import ops
from .base import Intervention, Temperature
from .computed import Computed


class FeatureSimilarity(Computed):
    """C_ij = cosine of the input features of i and j; nothing to learn. Features may be sparse CSR.

    (The paper's supplementary FS.) A part of the graph is scored by the rows that come with it.
    """

    reads_features = True
    whole_first = False
    decided_by = ()

    def __init__(self) -> None:
        super().__init__(temperature=1.0)

    def similarity(self, adj: Adjacency, x: Tensor | None) -> Tensor:
        assert x is not None
        return edge_cosine(adj, x)

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        if x is not None and x.grad_fn is None:
            if x.requires_grad:
                return edge_cosine(adj, x)
            if n_id is not None:
                return self.shared("scores", adj, x, self.similarity)
        return super().score(adj, x, n_id)

    def score_between(self, adj: Adjacency, x_src: Tensor, x_dst: Tensor | None) -> Tensor:
        """Features of two kinds can be compared where they mean the same, as words of one vocabulary do."""
        if x_dst is None or x_src.size(1) != x_dst.size(1):
            found = "none" if x_dst is None else str(x_dst.size(1))
            raise InputError(
                f"intervention: FeatureSimilarity compares features column by column, but sources have "
                f"{x_src.size(1)} and targets {found}; give this relation one number per edge instead"
            )
        return edge_cosine(adj, x_src, x_dst)


def edge_cosine(adj: Adjacency, x: Tensor, x_dst: Tensor | None = None) -> Tensor:
    """Cosine of i's and j's features for every entry; 0 where a row is all zeros. -> [entries]

    `x_dst` holds the features of the targets where those are nodes of another kind.
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
    source, source_norm = _rows_and_norms(x)
    target, target_norm = (source, source_norm) if x_dst is x else _rows_and_norms(x_dst)
    row, col = adj.row.cpu().numpy(), adj.col.cpu().numpy()
    step = 1 << 18
    parts = []
    for k in range(0, adj.num_entries, step):
        i, j = row[k : k + step], col[k : k + step]
        dot = (target[i] * source[j]).sum(axis=1)
        parts.append(torch.from_numpy(dot / (target_norm[i] * source_norm[j])))
    score = torch.cat(parts) if parts else torch.zeros(0)
    return score.to(dtype=x.dtype, device=x.device)


def _rows_and_norms(x: Tensor) -> tuple[sp.csr_array, np.ndarray]:
    matrix = sp.csr_array(to_scipy(x), dtype=np.float64)
    norm = np.sqrt((matrix * matrix).sum(axis=1))
    norm[norm == 0.0] = 1.0
    return matrix, norm


class EmbeddingSimilarity(Intervention):
    """C_ij = temperature * cosine(z_i, z_j) of node vectors z that are computed beforehand and stay fixed.

    Args:
        vectors: one row per node of the whole graph. [num_nodes, dimensions]
        temperature: how sharply attention follows the cosine; 0 would ignore it.
        learn_temperature: let training move it (it stays positive).
    """

    vectors: Tensor

    def __init__(self, vectors: Tensor, temperature: float = 8.0, learn_temperature: bool = False) -> None:
        super().__init__()
        if vectors.dim() != 2 or not bool(torch.isfinite(vectors).all()):
            raise InputError(
                f"vectors: expected finite numbers of shape [nodes, dimensions], got {tuple(vectors.shape)}"
            )
        self.register_buffer("vectors", F.normalize(vectors.detach(), dim=1))
        self.temperature = Temperature(temperature, learn_temperature)

    def reset_parameters(self) -> None:
        self.temperature.reset_parameters()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        """Vectors never change, so a graph's cosines are computed when it first comes in."""
        if n_id is None and adj.num_src != self.vectors.size(0):
            raise InputError(
                f"intervention: its vectors are for {self.vectors.size(0)} nodes, but this graph has "
                f"{adj.num_src}; make them for this graph, or pass n_id for a part of it"
            )
        key = (EmbeddingSimilarity, id(self.vectors), self.vectors._version)
        return self.temperature(adj.once(key, lambda: (self.vectors, self._cosine(adj, n_id)))[1])

    @torch.no_grad()
    def _cosine(self, adj: Adjacency, n_id: Tensor | None) -> Tensor:
        rows = self.vectors if n_id is None else self.vectors[n_id[: adj.num_src]]
        return ops.edge_dot(adj, rows[: adj.num_dst].contiguous(), rows)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Runs of before kept the temperature under another name, learnt or not."""
        log = state_dict.pop(prefix + "log_temperature", None)
        if log is not None and self.temperature.log is not None:
            state_dict[prefix + "temperature.log"] = log
        elif log is not None:
            self.temperature.start = float(log.exp())
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"num_nodes={self.vectors.size(0)}, dimensions={self.vectors.size(1)}"
