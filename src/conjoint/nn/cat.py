"""Graph conjoint attention networks: layers of CATConv over one shared intervention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import Field
from . import checks, ops
from .attention import ConjointAttention, Structure
from .conjoint_layer import ConjointLayer, Dropout
from .interventions import Intervention, Several
from .interventions.catalogue import as_intervention
from .layer_class import layer_class
from .layers import BatchNorm, draw_dropout
from .model import Perturb, Recent, ScoredModel, evaluating
from .names import Strategy
from .random_propagation import propagate, propagation_weights

ACTIVATIONS = ("elu", "relu")
NORMS = ("batch", "none")


class CAT(ScoredModel):
    """The network of the paper: hidden layers with concatenated heads, an output layer with averaged heads.

    `CAT(1433, 8, 7, intervention=MatrixFactorization(2708, 7))` is CAT-I-MF on Cora. Without an intervention
    and with `self_term=False` it is GAT. The variant for OGB-Arxiv is `CAT(128, 256, 40, heads=3,
    out_heads=3, residual=True, norm="batch", bias="output", per_head=False, intervention=...)`.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each head in the hidden layers.
        out_channels: number of classes.
        intervention: an `Intervention`, one number per edge as a tensor, or a name as in `CATConv`; None for
            feature attention alone.
        interventions: several of them; see `Several`, and `intervention_weights` for what they came to count.
        strategy: how it joins the feature attention: "implicit", "explicit" or "structural".
        num_layers: number of layers, 2 in the paper.
        heads: attention heads of the hidden layers.
        out_heads: attention heads of the output layer, averaged.
        dropout: on the input and the hidden units of every layer.
        attention_dropout: on the attention weights; the same as `dropout` by default.
        self_term, self_dropout, per_head, residual (one map per head): see `CATConv`.
        norm: "batch" or "none", after every hidden layer.
        bias: "none", "output" (only the last layer) or "all".
        activation: "elu" or "relu".
        propagate: steps that the logits take along the edges after the last layer, see `propagate`.
        teleport: share of a node's own logits in each of these steps.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        intervention: Intervention | Tensor | str | None = None,
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
        super().__init__(_one(intervention, interventions))
        checks.at_least(1, num_layers=num_layers, hidden_channels=hidden_channels, out_channels=out_channels)
        checks.at_least(0, propagate=propagate)
        checks.share(dropout=dropout, teleport=teleport)
        checks.one_of("activation", activation, ACTIVATIONS)
        checks.one_of("norm", norm, NORMS)
        checks.one_of("bias", bias, ("none", "output", "all"))
        self.strategy, self.dropout, self.activation = strategy, dropout, activation
        self.propagate, self.teleport = propagate, teleport
        serves_parts = self.intervention is None or self.intervention.serves_parts
        self.reach = num_layers if serves_parts and not propagate else None
        # The layers are given their scores: they hold no intervention, only how many scores an edge has.
        given = None
        if self.intervention is not None:
            given = Intervention()
            given.count = self.intervention.count
        options: dict[str, Any] = {
            "dropout": dropout if attention_dropout is None else attention_dropout,
            "strategy": strategy,
            "intervention": given,
            "self_term": self_term,
            "self_dropout": self_dropout,
            "per_head": per_head,
            "residual": "per-head" if residual else False,
        }
        self.convs, self.norms, layer = nn.ModuleList(), nn.ModuleList(), layer_class()
        width = in_channels
        for _ in range(num_layers - 1):
            self.convs.append(layer(width, hidden_channels, heads, bias=bias == "all", **options))
            width = hidden_channels * heads
            self.norms.append(BatchNorm(width) if norm == "batch" else nn.Identity())
        options |= {"concat": False, "bias": bias != "none"}
        self.convs.append(layer(width, out_channels, out_heads, **options))
        self._checked: Recent[None] = Recent()  # features without NaN

    def reset_parameters(self) -> None:
        """Draw all parameters anew, those of the intervention included."""
        for module in (*self.convs, *self.norms, self.intervention):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        graph: Tensor | Adjacency | Field,
        *,
        structure: Structure | None = None,
        n_id: Tensor | None = None,
    ) -> Tensor:
        """Logits. [nodes, in_channels] -> [targets, out_channels]

        `graph` is PyG's edge_index (or a sparse adjacency), an `Adjacency`, or the `Field` that the rows of x
        belong to. `structure` is what `self.structure` returned for them, if it is at hand already. `n_id`:
        global ids of the rows of x where they are a part of the intervention's graph (PyG's `batch.n_id`).
        """
        layers = self._layers(x, graph)
        structure = self.structure(x, graph, n_id) if structure is None else structure
        return self._propagated(self._logits(x, layers, structure).unsqueeze(0), layers[-1], structure)[0]

    def embed(self, x: Tensor, graph: Tensor | Adjacency | Field) -> Tensor:
        """What the output layer reads: the last hidden layer. -> [nodes, heads * hidden]"""
        return self._hidden(x, self._layers(x, graph), self.structure(x, graph))[0]

    def structure(
        self, x: Tensor, graph: Tensor | Adjacency | Field, n_id: Tensor | None = None
    ) -> Structure | None:
        """The structural scores of this step, computed once for all layers and heads."""
        if self.intervention is None:
            return None
        first = self._layers(x, graph)[0]
        n_id = graph.n_id if isinstance(graph, Field) else n_id
        if self.strategy == "explicit":
            return Structure(first, self.intervention(first, x, n_id))
        return self.intervention.structure(first, x, n_id)

    def penalty(self, graph: Tensor | Adjacency | None = None, score: Tensor | None = None) -> Tensor:
        """The intervention's loss L_ext over the whole graph; of the last `edge_index` seen by default."""
        graph = self._graphs.last if graph is None else graph
        if graph is None and self.intervention is not None:
            raise InputError("graph: penalty() was called before any forward pass; pass the edge_index")
        if isinstance(graph, Tensor) and self.intervention is not None:
            graph = self.prepare(graph, self._num_nodes(graph))
        return super().penalty(graph, score)

    def predict_often(
        self, x: Tensor, graph: Any, whole: Any = None, passes: int = 1, perturb: Perturb | None = None
    ) -> tuple[Tensor, Tensor]:
        structure = self.structure(x, graph)  # once for all passes
        # Before the logits: gradients are made in the opposite order, so those of V wait for the network's
        # to be gone, and the two never need memory at the same time.
        if isinstance(graph, Field):
            penalty = self.penalty(whole)
        else:
            penalty = self.penalty(graph, None if structure is None else structure.score)
        if perturb is None:  # the passes propagate side by side
            layers = self._layers(x, graph)
            each = [self._logits(x, layers, structure) for _ in range(passes)]
            joined = each[0].unsqueeze(0) if passes == 1 else torch.stack(each)
            return self._propagated(joined, layers[-1], structure), penalty
        logits = []
        for _ in range(passes):
            x_now, graph_now = perturb(x, graph)
            now = structure
            if structure is not None and graph_now is not graph:
                now = Structure(self._layers(x_now, graph_now)[0], structure.score)
            logits.append(self(x_now, graph_now, structure=now))
        return torch.stack(logits), penalty

    @torch.no_grad()
    def attention(self, x: Tensor, graph: Tensor | Adjacency) -> list[ConjointAttention]:
        """Every layer's attention weights, without dropout, beside the edges they belong to."""
        layers, out = self._layers(x, graph), []
        with evaluating(self):
            structure = self.structure(x, graph)
            for k, conv in enumerate(self.convs):
                x, weights = conv(x, layers[k], return_attention_weights=True, score=structure)
                out.append(weights)
                if k < len(self.norms):
                    x = ops.activate_and_drop(self.norms[k](x), self.activation, 0.0, None)
        return out

    def intervention_weights(self) -> list[dict[str, Tensor]]:
        """Layer by layer, [heads] by name. Implicit: shares of the attention, features included, of sum 1.
        Explicit: factors of the scores."""
        if self.intervention is None:
            return []
        names = self.intervention.names
        layers = []
        for conv in self.convs:
            assert isinstance(conv, ConjointLayer)
            weight = torch.ones(1, 1) if conv.views is None else conv.views.weight.detach()
            weight = weight.expand(conv.heads, len(names)).cpu()
            shares = {}
            if conv.mix is not None:
                mix = conv.mix.detach().cpu()
                shares["features"], weight = mix[:, 0], mix[:, 1:] * weight
            layers.append(shares | {name: weight[:, k] for k, name in enumerate(names)})
        return layers

    def _logits(self, x: Tensor, layers: tuple[Adjacency, ...], structure: Structure | None) -> Tensor:
        hidden, within = self._hidden(x, layers, structure)
        return self.convs[-1](hidden, layers[-1], score=structure, x_dropout=within)

    def _propagated(self, logits: Tensor, adj: Adjacency, structure: Structure | None) -> Tensor:
        """Logits after their steps along the edges, if they take any. [passes, nodes, classes]"""
        if not self.propagate:
            return logits
        weights = propagation_weights(adj, None if structure is None else structure.score).to(logits.dtype)
        return propagate(adj, weights, logits.transpose(0, 1), self.propagate, self.teleport).transpose(0, 1)

    def _hidden(
        self, x: Tensor, layers: tuple[Adjacency, ...], structure: Structure | None
    ) -> tuple[Tensor, Dropout | None]:
        """All layers but the last, dropped; the dropout of the features is left to the first layer."""
        share, seed = draw_dropout(self, self.dropout, x)
        within = None if seed is None else (share, seed)
        for conv, norm, adj in zip(self.convs, self.norms, layers, strict=False):
            x, within = norm(conv(x, adj, score=structure, x_dropout=within)), None
            x = ops.activate_and_drop(x, self.activation, *draw_dropout(self, self.dropout, x))
        return x, within

    def _layers(self, x: Tensor, graph: Tensor | Adjacency | Field) -> tuple[Adjacency, ...]:
        """One adjacency per layer; x is looked at once, however often the same tensor comes in."""
        checks.feature_pair(x)
        self._checked.get((x,), None, lambda: checks.finite(x))
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
        return int(edges.max()) + 1 if self._graphs.last is None else self._graphs.last.num_src


def _one(
    intervention: Intervention | Tensor | str | None, interventions: Sequence[Intervention | Tensor]
) -> Intervention | None:
    """Whatever was given as one intervention; a list of one is no list."""
    if intervention is not None and interventions:
        raise InputError("interventions: intervention= is given too; put all of them in the list")
    if len(interventions) > 1:
        return Several(interventions)
    return as_intervention(interventions[0] if interventions else intervention)
