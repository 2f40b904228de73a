"""MF and SC on the normalised adjacency, S = D^-1/2 (A + I) D^-1/2, learnt jointly with the network.

On the plain adjacency the rows of V grow with the degree, and <V_i, V_j> says more about hubs than about
communities. Here degrees are divided out twice: of the matrix that V explains, and of the score, which is a
cosine. With P = S^T V both losses cost O(|E| rank + N rank^2), like those of the plain adjacency.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from ...graph.adjacency import Adjacency
from .. import ops
from .factors import LowRank
from .temperature import Temperature


@dataclass(frozen=True, eq=False)
class _Scale:
    target: Tensor  # [num_dst, 1]: 1 / sqrt(degree), the node itself counted
    source: Tensor  # [num_src, 1]
    norm: float  # ||S||_F^2


class NormalisedFactors(LowRank):
    """C_ij = temperature * cosine(V_i, V_j) of learnt factors V. The temperature is learnt too by default."""

    def __init__(
        self, num_nodes: int, rank: int, temperature: float = 8.0, learn_temperature: bool = True
    ) -> None:
        super().__init__(num_nodes, rank)
        self.temperature = Temperature(temperature, learn_temperature)
        self._scales: WeakKeyDictionary[Adjacency, _Scale] = WeakKeyDictionary()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if hasattr(self, "temperature"):
            self.temperature.reset_parameters()

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        unit = F.normalize(self.rows(adj, n_id), dim=1)
        targets = unit if adj.num_dst == unit.size(0) else unit[: adj.num_dst]
        return self.temperature(ops.edge_dot(adj, targets, unit))

    def spread(self, adj: Adjacency, factors: Tensor) -> Tensor:
        """S^T V. [num_src, rank]"""
        scale = self._scale(adj, factors)
        scaled = scale.target * factors[: adj.num_dst]
        own = F.pad(scaled, (0, 0, 0, adj.num_src - adj.num_dst))
        return scale.source * (ops.spread(adj, scaled) + own)

    def _scale(self, adj: Adjacency, like: Tensor) -> _Scale:
        kept = self._scales.get(adj)
        if kept is None or kept.target.dtype != like.dtype or kept.target.device != like.device:
            row, col = adj.row[adj.simple], adj.col[adj.simple]
            target = 1.0 / (1.0 + torch.bincount(row, minlength=adj.num_dst)).double()
            source = 1.0 / (1.0 + torch.bincount(col, minlength=adj.num_src)).double()
            norm = (target[row] * source[col]).sum() + (target * source[: adj.num_dst]).sum()
            target, source = (part.sqrt().to(like.dtype).unsqueeze(1) for part in (target, source))
            kept = self._scales[adj] = _Scale(target, source, float(norm))
        return kept

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_scales": WeakKeyDictionary()}  # copies carry no graph along


class NormalisedFactorization(NormalisedFactors):
    r"""MF of S. At its optimum V holds the leading eigenvectors, which `SpectralSimilarity` computes.

    .. math:: L = \|S - V V^T\|_F^2 = \|S\|^2 - 2 \langle P, V \rangle + \|V^T V\|_F^2
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        along_edges = (self.spread(adj, factors) * factors).sum()
        gram = factors.t() @ factors
        return self._scale(adj, factors).norm - 2.0 * along_edges + gram.square().sum()


class NormalisedExpression(NormalisedFactors):
    r"""SC of S: each row of S is expressed by other rows.

    .. math:: L = \|S - V V^T S\|_F^2 = \|S\|^2 - 2 \|P\|_F^2 + \mathrm{tr}(P^T P \cdot V^T V)
    """

    def penalty(self, adj: Adjacency, n_id: Tensor | None = None, score: Tensor | None = None) -> Tensor:
        factors = self.rows(adj, n_id)
        spread = self.spread(adj, factors)
        spread_gram = spread.t() @ spread
        expressed = (spread_gram * (factors.t() @ factors)).sum()
        return self._scale(adj, factors).norm - 2.0 * torch.trace(spread_gram) + expressed
