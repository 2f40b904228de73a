r"""Features that are propagated along the edges before a perceptron reads them.

After GRAND, "Graph Random Neural Networks for Semi-Supervised Learning on Graphs" (Feng et al., 2020):

.. math:: \bar X = \frac{1}{K + 1} \sum_{k=0}^{K} P^k \, \mathrm{drop}(X), \quad
    Z = \sigma(\bar X W_1 + b_1) W_2 + b_2

GRAND takes the normalised adjacency for P. Here an edge is weighted by its structural score C, so
that features do not take edges that are probably wrong:

.. math:: P_{ij} = \frac{w_{ij}}{\sqrt{d_i d_j}}, \quad w_{ij} = e^{C_{ij}},
    \quad d_i = \sum_{j \in N_i} w_{ij}

With a gate, W_1 is diag(g) V, both learnt. Weight decay on g and V together prices each feature's row as a
whole, so uninformative features are left out, and informative ones cost less. (GRAND's code has such a
factor on Pubmed alone, inside the batch normalisation of its input.)
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..graph.adjacency import Adjacency
from . import checks, ops
from .attention import ConjointAttention
from .interventions import Intervention
from .layers import FeatureLinear, draw_dropout, dropped, project
from .model import Perturb, ScoredModel

# Columns that are propagated at once: a row's sum then stays in registers (csrc/walk.h).
WIDEST = 64


@torch.no_grad()
def propagation_weights(adj: Adjacency, score: Tensor | None) -> Tensor:
    """P on the entries, without a gradient; of [entries, k] scores the mean counts. -> [entries, 1]"""
    if score is None:
        score = torch.zeros(adj.num_entries, device=adj.col.device)
    elif score.dim() == 2:
        score = score.mean(dim=1)
    if adj.log_weight is not None:
        score = score + adj.log_weight.to(score.dtype)
    # Logarithms of d, as a score of 100 must not overflow. Every node has a loop, so each row has a largest.
    largest = score.new_full((adj.num_dst,), -torch.inf).scatter_reduce(0, adj.row, score, "amax")
    total = score.new_zeros(adj.num_dst).index_add(0, adj.row, (score - largest[adj.row]).exp())
    log_degree = largest + total.log()
    # Above 0 only where C_ij and C_ji differ: no edge may multiply what it carries.
    return (score - 0.5 * (log_degree[adj.row] + log_degree[adj.col])).clamp(max=0.0).exp().unsqueeze(1)


def propagate(adj: Adjacency, weights: Tensor, logits: Tensor, steps: int, teleport: float) -> Tensor:
    """Logits Z after `steps` of personalised PageRank, H <- (1 - t) P H + t Z. logits: [nodes, ...]

    As in APPNP ("Predict then Propagate", Klicpera et al., 2019).
    """
    start = logits.flatten(1).unsqueeze(1)  # [nodes, 1, channels]: one head
    now = start
    for _ in range(steps):
        now = torch.lerp(ops.aggregate(adj, weights, now), start, teleport)
    return now.reshape(logits.shape)


class RandomPropagation(ScoredModel):
    """Random propagation over edges weighted by an intervention, then two layers.

    Args:
        in_channels: number of input features.
        hidden_channels: units of the hidden layer.
        out_channels: number of classes.
        intervention: scores the edges; None takes them all for equal, which is GRAND's graph.
        steps: K, how far features are propagated.
        dropout: on the input features and on the hidden units.
        drop_node: share of nodes that are masked in a pass, all of their features at once.
        gate: whether each input feature has a learnt factor of its own.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        intervention: Intervention | None = None,
        steps: int = 8,
        dropout: float = 0.5,
        drop_node: float = 0.5,
        gate: bool = False,
    ) -> None:
        super().__init__(intervention)
        checks.at_least(1, hidden_channels=hidden_channels, out_channels=out_channels)
        checks.at_least(0, steps=steps)
        checks.share(dropout=dropout, drop_node=drop_node)
        self.steps, self.dropout, self.drop_node = steps, dropout, drop_node
        self.first = FeatureLinear(in_channels, hidden_channels, bias=False, weight_initializer="glorot")
        self.gate = nn.Parameter(torch.ones(in_channels)) if gate else None
        self.first_bias = nn.Parameter(torch.zeros(hidden_channels))
        self.second = nn.Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw all parameters anew, those of the intervention included."""
        self.first.reset_parameters()
        if self.gate is not None:
            nn.init.ones_(self.gate)
        nn.init.zeros_(self.first_bias)
        self.second.reset_parameters()
        if self.intervention is not None:
            self.intervention.reset_parameters()

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        return self.second(self.embed(x, graph))

    def embed(self, x: Tensor, graph: Adjacency) -> Tensor:
        """The hidden units."""
        return self._activate(self._propagate(self._project(x).unsqueeze(1), x, graph)).squeeze(1)

    def predict_often(
        self, x: Tensor, graph: Adjacency, whole: Any = None, passes: int = 1, perturb: Perturb | None = None
    ) -> tuple[Tensor, Tensor]:
        """The passes are propagated side by side, unless each has a graph of its own."""
        inputs = [(x, graph) if perturb is None else perturb(x, graph) for _ in range(passes)]
        if any(graph_now is not graph for _, graph_now in inputs):
            logits = torch.stack([self(*one) for one in inputs])
        else:
            hidden = torch.stack([self._project(x_now) for x_now, _ in inputs], dim=1)
            hidden = self._propagate(hidden, x, graph)  # [nodes, passes, hidden]
            logits = self.second(self._activate(hidden)).transpose(0, 1)
        return logits, self.penalty(graph)

    @torch.no_grad()
    def attention(self, x: Tensor, graph: Adjacency) -> list[ConjointAttention]:
        """P beside the edges: one layer, one head. What a node takes from another in one step."""
        weights = graph.to_user_order(self._weights(x, graph))
        return [ConjointAttention(graph.edge_index, weights, structural=weights.squeeze(1))]

    def _project(self, x: Tensor) -> Tensor:
        """drop(X) W_1: before propagation, as hidden units are fewer than features. [nodes, hidden]"""
        weight = self.first.weight if self.gate is None else self.first.weight * self.gate
        hidden = project(dropped(self, x, self.dropout), weight)
        if not self.training or self.drop_node == 0.0:
            return hidden
        mask = torch.rand(hidden.size(0), 1, device=hidden.device) >= self.drop_node
        return hidden * (mask / (1.0 - self.drop_node))

    def _propagate(self, hidden: Tensor, x: Tensor, graph: Adjacency) -> Tensor:
        """The mean over 0 to K steps. [nodes, passes, hidden]"""
        weights = self._weights(x, graph).to(hidden.dtype)
        parts = []
        for some in hidden.split(max(1, WIDEST // hidden.size(2)), dim=1):
            start = some.flatten(1).unsqueeze(1)  # one head, the passes' channels side by side
            total = start
            for _ in range(self.steps):  # H + P (H + P (H + ...))
                total = ops.aggregate(graph, weights, total).add_(start)
            parts.append((total / (self.steps + 1)).reshape(some.shape))
        return torch.cat(parts, dim=1)

    def _weights(self, x: Tensor, graph: Adjacency) -> Tensor:
        """P on the entries of the graph. [entries, 1]"""
        return propagation_weights(graph, None if self.intervention is None else self.intervention(graph, x))

    def _activate(self, hidden: Tensor) -> Tensor:
        """Bias, ReLU and, in training, dropout. [nodes, passes, hidden]"""
        dropout = draw_dropout(self, self.dropout, hidden)
        return ops.activate_and_drop(hidden + self.first_bias, "relu", *dropout)
