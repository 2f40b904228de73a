"""Graph conjoint attention networks: layers of CATConv over one shared intervention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency, adjacency
from ..graph.field import Field
from . import checks, ops
from .attention import ConjointAttention, Structure
from .conv import CATConv, Strategy
from .interventions import EdgeScores, Intervention, Several
from .model import NodeModel, Perturb
from .norm import BatchNorm
from .orders import Dropout
from .propagation import propagate, propagation_weights
from .randomness import draw_seed

ACTIVATIONS = ("elu", "relu")
NORMS = ("batch", "none")


class CAT(NodeModel):
    """The network of the paper: hidden layers with concatenated heads, an output layer with averaged heads.

    `CAT(1433, 8, 7, intervention=MatrixFactorization(2708, 7))` is CAT-I-MF on Cora. Without an intervention
    and with `self_term=False` it is GAT. The variant for OGB-Arxiv is `CAT(128, 256, 40, heads=3,
    out_heads=3, residual=True, norm="batch", bias="output", per_head=False, intervention=...)`.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each head in the hidden layers.
        out_channels: number of classes.
        intervention: an `Intervention`, or one number per edge as a tensor; None for feature attention alone.
        interventions: several of them; see `Several`, and `intervention_weights` for what they came to count.
        strategy: how it joins the feature attention: "implicit", "explicit" or "structural".
        num_layers: number of layers, 2 in the paper.
        heads: attention heads of the hidden layers.
        out_heads: attention heads of the output layer, averaged.
        dropout: on the input and the hidden units of every layer.
        attention_dropout: on the attention weights; the same as `dropout` by default.
        self_term, self_dropout, per_head: see `CATConv`.
        residual: add a linear map of each layer's input to its output, one per head.
        norm: "batch" or "none", after every hidden layer.
        bias: "none", "output" (only the last layer) or "all".
        activation: "elu" or "relu".
        propagate: steps that the logits take along the edges after the last layer, see `nn.propagation`.
        teleport: share of a node's own logits in each of these steps.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        intervention: Intervention | Tensor | None = None,
        interventions: Sequence[Intervention | Tensor] = (),
        strategy: Strategy = "implicit",
        num_layers: int = 2,
        heads: int = 8,
        out_heads: int = 1,
        dropout: float = 0.6,
        attention_dropout: float | None = None,
        self_term: bool = True,
        self_dropout: float = 0.0,
        per_head: bool = True,
        residual: bool = False,
        norm: str = "none",
        bias: str = "none",
        activation: str = "elu",
        propagate: int = 0,
        teleport: float = 0.1,
    ) -> None:
        super().__init__()
        checks.positive(num_layers=num_layers, hidden_channels=hidden_channels, out_channels=out_channels)
        checks.share(dropout=dropout, teleport=teleport)
        checks.not_negative(propagate=propagate)
        checks.one_of("activation", activation, ACTIVATIONS)
        checks.one_of("norm", norm, NORMS)
        checks.one_of("bias", bias, ("none", "output", "all"))
        self.intervention = _one(intervention, interventions)
        self.strategy, self.dropout, self.activation = strategy, dropout, activation
        self.propagate, self.teleport = propagate, teleport
        serves_parts = self.intervention is None or self.intervention.serves_parts
        self.reach = num_layers if serves_parts and not propagate else None
        # The layers take their scores from `structure`, so they hold no intervention, only its presence.
        layer_options: dict[str, Any] = {
            "dropout": dropout if attention_dropout is None else attention_dropout,
            "strategy": strategy,
            "intervention": None if self.intervention is None else _Shared(self.intervention.count),
            "self_term": self_term,
            "self_dropout": self_dropout,
            "per_head": per_head,
            "residual": "per-head" if residual else False,
        }
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        width = in_channels
        for _ in range(num_layers - 1):
            self.convs.append(CATConv(width, hidden_channels, heads, bias=bias == "all", **layer_options))
            width = hidden_channels * heads
            self.norms.append(BatchNorm(width) if norm == "batch" else nn.Identity())
        self.convs.append(
            CATConv(width, out_channels, out_heads, concat=False, bias=bias != "none", **layer_options)
        )
        self._checked: list[tuple[Tensor, int]] = []
        self._prepared: tuple[Tensor, int, int, Adjacency] | None = None

    def reset_parameters(self) -> None:
        """Draw all parameters anew, those of the intervention included."""
        for module in (*self.convs, *self.norms, self.intervention):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def prepare(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        """The graph with one self-loop per node, sorted by listener; the last one is kept."""
        version = -1 if edge_index.is_inference() else edge_index._version
        if self._prepared is not None and version >= 0 and edge_weight is None:
            seen, seen_version, seen_nodes, kept = self._prepared
            if seen is edge_index and (seen_version, seen_nodes) == (version, num_nodes):
                return kept
        made = adjacency(edge_index, num_nodes)
        if edge_weight is not None:
            made, version = made.with_weights(edge_weight), -1  # never taken for the unweighted graph
        self._prepared = (edge_index, version, num_nodes, made)
        return made

    def forward(
        self, x: Tensor, graph: Tensor | Adjacency | Field, *, structure: Structure | None = None
    ) -> Tensor:
        """Logits. [nodes, in_channels] -> [targets, out_channels]

        `graph` is PyG's edge_index (or a sparse adjacency), an `Adjacency`, or the `Field` that the rows of x
        belong to. `structure` is what `self.structure` returned for them, if it is at hand already.
        """
        layers = self._layers(x, graph)
        structure = self.structure(x, graph) if structure is None else structure
        return self._spread(self._logits(x, layers, structure), layers[-1], structure)

    def embed(self, x: Tensor, graph: Tensor | Adjacency | Field) -> Tensor:
        """What the output layer reads: the last hidden layer. -> [nodes, heads * hidden]"""
        return self._hidden(x, self._layers(x, graph), self.structure(x, graph))[0]

    def structure(self, x: Tensor, graph: Tensor | Adjacency | Field) -> Structure | None:
        """The structural scores of this step, computed once for all layers and heads."""
        if self.intervention is None:
            return None
        first = self._layers(x, graph)[0]
        n_id = graph.n_id if isinstance(graph, Field) else None
        if self.strategy == "explicit":
            return Structure(first, self.intervention(first, x, n_id))
        return self.intervention.structure(first, x, n_id)

    def observe(self, x: Tensor, graph: Tensor | Adjacency) -> None:
        """Let the intervention see the whole graph, as some must before they score a part of it."""
        if self.intervention is not None:
            self.intervention.observe(self._layers(x, graph)[0], x)

    def penalty(self, graph: Tensor | Adjacency | None = None, score: Tensor | None = None) -> Tensor:
        """The intervention's loss L_ext over the whole graph; of the last `edge_index` seen by default."""
        if self.intervention is None:
            return super().penalty(graph)
        if graph is None:
            if self._prepared is None:
                raise InputError("graph: penalty() was called before any forward pass; pass the edge_index")
            graph = self._prepared[3]
        if not isinstance(graph, Adjacency):
            graph = self.prepare(graph, self._num_nodes(graph))
        return self.intervention.penalty(graph, None, score)

    def predict_often(
        self,
        x: Tensor,
        graph: Adjacency | Field,
        whole: Adjacency | None = None,
        passes: int = 1,
        perturb: Perturb | None = None,
    ) -> tuple[Tensor, Tensor]:
        structure = self.structure(x, graph)  # once for all passes
        # Before the logits: gradients are made in the opposite order, so those of V wait for the network's
        # to be gone, and the two never need memory at the same time.
        penalty = self._penalty_of(graph, whole, structure)
        if perturb is None:  # the passes take their steps along the edges side by side
            layers = self._layers(x, graph)
            each = [self._logits(x, layers, structure) for _ in range(passes)]
            spread = each[0].unsqueeze(0) if passes == 1 else torch.stack(each)
            if self.propagate:
                spread = self._spread(torch.stack(each, dim=1), layers[-1], structure).transpose(0, 1)
            return spread, penalty
        logits = []
        for _ in range(passes):
            x_now, graph_now = perturb(x, graph)
            now = structure
            if structure is not None and graph_now is not graph:
                now = Structure(self._layers(x_now, graph_now)[0], structure.score)
            logits.append(self(x_now, graph_now, structure=now))
        return torch.stack(logits), penalty

    def _penalty_of(
        self, graph: Adjacency | Field, whole: Adjacency | None, structure: Structure | None
    ) -> Tensor:
        """Over the whole graph; its scores are at hand unless only a field was scored."""
        if isinstance(graph, Field):
            return self.penalty(whole)
        return self.penalty(graph, None if structure is None else structure.score)

    @torch.no_grad()
    def attention(self, x: Tensor, graph: Tensor | Adjacency) -> list[ConjointAttention]:
        """Every layer's attention weights, without dropout, beside the edges they belong to."""
        was_training = self.training
        self.eval()
        try:
            layers, structure = self._layers(x, graph), self.structure(x, graph)
            out = []
            for k, conv in enumerate(self.convs):
                x, weights = conv(x, layers[k], return_attention_weights=True, score=structure)
                out.append(weights)
                if k < len(self.norms):
                    x = ops.activate_and_drop(self.norms[k](x), self.activation, 0.0, None)
            return out
        finally:
            self.train(was_training)

    def intervention_weights(self) -> list[dict[str, Tensor]]:
        """Layer by layer, [heads] by name. Implicit: shares of the attention, features included, of sum 1.
        Explicit: factors of the scores."""
        if self.intervention is None:
            return []
        names = self.intervention.names
        layers = []
        for conv in self.convs:
            assert isinstance(conv, CATConv)
            weight = torch.ones(1, 1) if conv.views is None else conv.views.weight.detach()
            weight = weight.expand(conv.heads, len(names)).cpu()
            shares = {}
            if conv.mix is not None:
                mix = conv.mix.detach().cpu()
                shares["features"], weight = mix[:, 0], mix[:, 1:] * weight
            layers.append(shares | {name: weight[:, k] for k, name in enumerate(names)})
        return layers

    def structural_parameters(self) -> list[nn.Parameter]:
        return [] if self.intervention is None else list(self.intervention.parameters())

    def _logits(self, x: Tensor, layers: tuple[Adjacency, ...], structure: Structure | None) -> Tensor:
        hidden, within = self._hidden(x, layers, structure)
        return self.convs[-1](hidden, layers[-1], score=structure, x_dropout=within)

    def _spread(self, logits: Tensor, adj: Adjacency, structure: Structure | None) -> Tensor:
        """Logits after their steps along the edges, if they take any. [nodes, ...]"""
        if not self.propagate:
            return logits
        weights = propagation_weights(adj, None if structure is None else structure.score)
        return propagate(adj, weights.to(logits.dtype), logits, self.propagate, self.teleport)

    def _hidden(
        self, x: Tensor, layers: tuple[Adjacency, ...], structure: Structure | None
    ) -> tuple[Tensor, Dropout | None]:
        """All layers but the last: activated and, unless the dropout beside it is still to come, dropped."""
        x, within = self._drop(x)
        for conv, norm, adj in zip(self.convs, self.norms, layers, strict=False):
            x, within = norm(conv(x, adj, score=structure, x_dropout=within)), None
            x = ops.activate_and_drop(x, self.activation, *self._dropout(x))
        return x, within

    def _drop(self, x: Tensor) -> tuple[Tensor, Dropout | None]:
        """Dropout on the input: dense features now, sparse ones while the first layer multiplies them."""
        dropout, seed = self._dropout(x)
        if seed is None:
            return x, None
        return (x, (dropout, seed)) if x.layout == torch.sparse_csr else (ops.drop(x, dropout, seed), None)

    def _dropout(self, like: Tensor) -> tuple[float, Tensor | None]:
        active = self.training and self.dropout > 0.0
        return (self.dropout, draw_seed(like.device)) if active else (0.0, None)

    def _layers(self, x: Tensor, graph: Tensor | Adjacency | Field) -> tuple[Adjacency, ...]:
        """One adjacency per layer; x is looked at once, however often the same tensor comes in."""
        if not any(seen is x and version == x._version for seen, version in self._checked):
            checks.feature_pair(x)
            checks.finite(x)
            self._checked = [*self._checked[-1:], (x, x._version)]  # training and validation take turns
        if isinstance(graph, Field):
            if self.propagate:
                raise InputError(f"graph: with propagate={self.propagate} only the whole graph will do")
            if len(graph.layers) != len(self.convs):
                raise InputError(f"graph: a field of {len(graph.layers)} hops for {len(self.convs)} layers")
            return graph.layers
        if not isinstance(graph, Adjacency):
            graph = self.prepare(graph, x.size(0))
        return (graph,) * len(self.convs)

    def _num_nodes(self, edges: Tensor) -> int:
        members = self.intervention.each if isinstance(self.intervention, Several) else [self.intervention]
        for factors in (getattr(one, "factors", None) for one in members):
            if factors is not None:
                return factors.size(0)
        return self._prepared[2] if self._prepared is not None else int(edges.max()) + 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_checked": [], "_prepared": None}  # copies carry no graph along


def _one(
    intervention: Intervention | Tensor | None, interventions: Sequence[Intervention | Tensor]
) -> Intervention | None:
    """Whatever was given as one intervention; a list of one is no list."""
    if intervention is not None and interventions:
        raise InputError("interventions: intervention= is given too; put all of them in the list")
    if len(interventions) > 1:
        return Several(interventions)
    given = interventions[0] if interventions else intervention
    return EdgeScores(given) if isinstance(given, Tensor) else given


class _Shared(Intervention):
    """Stands in a layer for the intervention that the network holds: the layer must be given its scores."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def score(self, adj: Adjacency, x: Tensor | None = None, n_id: Tensor | None = None) -> Tensor:
        raise InputError("score: a layer of CAT takes its scores from the network; pass score=")
