"""Similarity of fixed node vectors as an intervention: spectra, smoothed features, any embedding."""

from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import InputError
from ...graph.adjacency import Adjacency
from .. import ops
from .base import Intervention


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
        if not temperature > 0.0:
            raise InputError(f"temperature: {temperature}; choose a number above 0, for example 8")
        self.register_buffer("vectors", F.normalize(vectors.detach(), dim=1))
        log = torch.tensor(float(temperature)).log()
        self.log_temperature = nn.Parameter(log, requires_grad=learn_temperature)
        self._kept: WeakKeyDictionary[Adjacency, Tensor] = WeakKeyDictionary()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        return self.log_temperature.exp() * self._cosine(adj, n_id)

    def _cosine(self, adj: Adjacency, n_id: Tensor | None) -> Tensor:
        """Vectors never change, so a graph's cosines are computed when it first comes in."""
        kept = self._kept.get(adj)
        if kept is None or kept.device != self.vectors.device or kept.dtype != self.vectors.dtype:
            if n_id is None and adj.num_src != self.vectors.size(0):
                raise InputError(
                    f"intervention: its vectors are for {self.vectors.size(0)} nodes, but this graph has "
                    f"{adj.num_src}; make them for this graph, or pass n_id for a part of it"
                )
            rows = self.vectors if n_id is None else self.vectors[n_id[: adj.num_src]]
            with torch.no_grad():
                kept = ops.edge_dot(adj, rows[: adj.num_dst].contiguous(), rows)
            self._kept[adj] = kept
        return kept

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": WeakKeyDictionary()}  # copies carry no graph along

    def extra_repr(self) -> str:
        return f"num_nodes={self.vectors.size(0)}, dimensions={self.vectors.size(1)}"
