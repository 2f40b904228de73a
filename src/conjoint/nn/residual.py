r"""A deep network for conjoint attention on graphs of any kind: residual blocks around `CATConv`.

.. math::
    h^0 = W_x x + W_r r, \quad
    h^{l+1} = h^l + \mathrm{drop}(\sigma(\mathrm{CATConv}(n) + W_o n)), \quad n = \mathrm{norm}(h^l)

W_o reads the node itself, apart from its neighbours: the self term's idea, made strong, which graphs need
whose neighbours differ. r describes the node's place in the graph (`role_features`). Scores of an
intervention are multiplied by a learnt number per block and head that may be zero or negative: likeness can
also mean distance.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..graph.adjacency import Adjacency
from ..graph.roles import ROLES, role_features
from ..graph.sparse import is_sparse
from . import checks, ops
from .attention import ConjointAttention, ScaledStructure, Structure
from .interventions import Constant, Intervention
from .layer_class import layer_class
from .layers import BatchNorm, DenseLinear, FeatureLinear, LayerNorm, draw_dropout, dropped
from .model import Recent, ScoredModel, evaluating
from .names import Strategy

NORMS = {"layer": LayerNorm, "batch": BatchNorm, "none": nn.Identity}


class Aggregators(nn.Module):
    """Plain aggregators beside attention, after PNA (Corso et al., 2020): mean, sum, deviation and maximum.

    Each is multiplied by a learnt map, and so is its product with the logarithm of the degree.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.map = nn.Linear(8 * hidden, hidden)

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        """[nodes, hidden] -> [nodes, hidden]"""
        count = graph.degree.clamp(min=1).to(x.dtype).unsqueeze(1)
        each = x.new_ones(graph.num_entries, 1)
        mean, square = (ops.aggregate(graph, each, y.unsqueeze(1)).squeeze(1) / count for y in (x, x * x))
        deviation = (square - mean * mean).clamp(min=1e-6).sqrt()
        total = mean * count.sqrt()  # a sum, tempered: plain sums explode at hubs
        parts = torch.cat([mean, deviation, ops.neighbour_max(graph, x), total], dim=1)
        return self.map(torch.cat([parts, parts * count.log1p() / count.log1p().mean()], dim=1))


class Block(nn.Module):
    """norm, conjoint attention beside a map of the node itself, activation, dropout, residual."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        norm: str,
        dropout: float,
        attention_dropout: float,
        strategy: Strategy,
        scored: bool,
        edges: bool,
        aggregators: bool,
    ) -> None:
        super().__init__()
        self.norm = NORMS[norm](hidden)
        self.dropout = dropout
        self.own = DenseLinear(hidden, hidden)
        self.conv = None
        if edges:
            self.conv = layer_class()(
                hidden,
                hidden // heads,
                heads,
                dropout=attention_dropout,
                bias=False,
                self_term=False,
                strategy=strategy,
                intervention=Constant() if scored else None,  # scores are given to it
            )
        self.factor = nn.Parameter(torch.ones(heads)) if scored and edges else None
        self.aggregators = Aggregators(hidden) if aggregators and edges else None

    def forward(self, h: Tensor, graph: Adjacency, score: Tensor | None) -> Tensor:
        n = self.norm(h)  # [nodes, hidden]
        out = self.own(n)
        if self.conv is not None:
            out = ops.add(out, self.conv(n, graph, score=self.structure(graph, score)))
        if self.aggregators is not None:
            out = out + self.aggregators(n, graph)
        out = ops.activate_and_drop(out, "relu", *draw_dropout(self, self.dropout, out))
        return ops.add(h, out)

    def structure(self, graph: Adjacency, score: Tensor | None) -> Structure | None:
        """The scores of each head, by its own factor. -> [entries, heads]"""
        if score is None or self.factor is None:
            return None
        return ScaledStructure(graph, score, self.factor)


class ResidualCAT(ScoredModel):
    """Residual blocks of conjoint attention.

    Args:
        in_channels: number of input features.
        hidden_channels: units of each block; a multiple of `heads`.
        out_channels: number of classes.
        intervention: scores the edges; None: attention to features alone.
        strategy: how scores join the attention to features: "implicit", "explicit" or "structural".
        num_layers: blocks, 1 to 10 as a rule.
        heads: attention heads of each block.
        norm: "layer", "batch" or "none", before each block and before the output.
        dropout: on the input features, after each block and before the output.
        attention_dropout: on attention weights.
        roles: also read what the node's place in the graph is like, see `role_features`.
        edges: False leaves the edges out: the same body as a perceptron, for graphs whose edges tell nothing.
        aggregators: mean, deviation, maximum and sum of the neighbours beside attention.
        contamination: in training, scores get random noise of this many of their standard deviations, so that
            the network does not rely on scores that are wrong here and there.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        intervention: Intervention | None = None,
        strategy: Strategy = "implicit",
        num_layers: int = 2,
        heads: int = 8,
        norm: str = "layer",
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        roles: bool = True,
        edges: bool = True,
        aggregators: bool = False,
        contamination: float = 0.0,
    ) -> None:
        super().__init__(intervention)
        checks.at_least(1, num_layers=num_layers, hidden_channels=hidden_channels, heads=heads)
        checks.share(dropout=dropout, attention_dropout=attention_dropout)
        checks.one_of("norm", norm, NORMS)
        checks.multiple("hidden", hidden_channels, heads)
        self.strategy, self.dropout, self.contamination = strategy, dropout, contamination
        self.edges = edges
        self.first = FeatureLinear(in_channels, hidden_channels, bias=True)
        self.place = nn.Linear(ROLES, hidden_channels) if roles else None
        # Columns of dense features are brought to mean 0 and deviation 1; sparse ones are read as they are.
        self.register_buffer("shift", torch.zeros(in_channels))
        self.register_buffer("scale", torch.zeros(in_channels))
        options: Any = (hidden_channels, heads, norm, dropout, attention_dropout, strategy)
        options += (intervention is not None, edges, aggregators)
        self.blocks = nn.ModuleList(Block(*options) for _ in range(num_layers))
        self.norm = NORMS[norm](hidden_channels)
        self.last = nn.Linear(hidden_channels, out_channels)
        self._standard: Recent[Tensor] = Recent()

    def observe(self, x: Tensor, graph: Tensor | Adjacency) -> None:
        """Score the whole graph by these features; the first graph also says how columns are scaled."""
        super().observe(x, graph)
        self._fit_scale(x)

    def _fit_scale(self, x: Tensor) -> None:
        if not is_sparse(x) and not bool(self.scale.any()):
            deviation, mean = torch.std_mean(x.double(), dim=0, correction=0)
            self.shift.copy_(mean)
            self.scale.copy_(1.0 / torch.where(deviation > 1e-6, deviation, 1.0))

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        return self.last(self._drop(self.norm(self._hidden(x, graph))))

    def embed(self, x: Tensor, graph: Adjacency) -> Tensor:
        """What the output map reads."""
        return self.norm(self._hidden(x, graph))

    def _hidden(self, x: Tensor, graph: Adjacency) -> Tensor:
        h, score = self._input(x, graph), self._score(x, graph)
        for block in self.blocks:
            h = block(h, graph, score)
        return h

    def _input(self, x: Tensor, graph: Adjacency) -> Tensor:
        """W_x x + W_r r. -> [nodes, hidden]"""
        if not is_sparse(x):
            self._fit_scale(x)  # for who calls the network without `observe`
            given = x
            x = self._standard.get((given,), None, lambda: (given - self.shift) * self.scale)
        h = self.first(dropped(self, x, self.dropout))
        if self.place is None:
            return h
        made = graph.once(role_features, lambda: role_features(graph.edge_index, graph.num_src))
        return ops.add(h, self.place(made.to(h)))

    def _score(self, x: Tensor, graph: Adjacency) -> Tensor | None:
        """C_ij of this step, the same for all blocks. -> [entries]"""
        if self.intervention is None:
            return None
        score = self.intervention(graph, x)
        if score.dim() == 2:  # of several interventions: their mean, as in random propagation
            score = score.mean(dim=1)
        if self.training and self.contamination > 0.0:
            score = score + self.contamination * score.detach().std() * torch.randn_like(score)
        return score

    @torch.no_grad()
    def attention(self, x: Tensor, graph: Adjacency) -> list[ConjointAttention]:
        """Every block's attention weights, without dropout, beside the edges that they belong to."""
        with evaluating(self):
            h, score, out = self._input(x, graph), self._score(x, graph), []
            for block in self.blocks:
                assert isinstance(block, Block)
                if block.conv is not None:
                    given = block.structure(graph, score)
                    out.append(
                        block.conv(block.norm(h), graph, score=given, return_attention_weights=True)[1]
                    )
                h = block(h, graph, score)
            return out

    def _drop(self, h: Tensor) -> Tensor:
        share, seed = draw_dropout(self, self.dropout, h)
        return h if seed is None else ops.drop(h, share, seed)
