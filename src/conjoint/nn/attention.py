"""From logits and structural scores to conjoint attention weights (Eq. 4-8), and how they leave a layer."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..graph.adjacency import Adjacency
from . import ops


class Structure:
    """Structural scores C_ij of one graph and one step, shared by all layers and heads.

    Of k interventions there are k columns, [entries, k], until a layer has joined them to one per head.
    """

    def __init__(self, adj: Adjacency, score: Tensor, attention: Tensor | None = None) -> None:
        self.adj, self.score = adj, score  # score: [entries]
        if attention is not None:
            self.__dict__["attention"] = attention

    @cached_property
    def attention(self) -> Tensor:
        """Eq. 5: s_ij, in which an edge of weight w counts as w parallel ones. [entries]"""
        return ops.edge_softmax(self.adj, weighted(self.score, self.adj.log_weight))

    def mixed(self, share: Tensor) -> "Structure":
        """Several attentions averaged with shares of sum 1, [heads, k]. -> attention [entries, heads]"""
        return Structure(self.adj, self.score, self.attention @ share.t().to(self.attention.dtype))

    def added(self, weight: Tensor) -> "Structure":
        """Several scores added up with these weights, [heads, k]. -> score [entries, heads]"""
        return Structure(self.adj, self.score @ weight.t().to(self.score.dtype))

    def first(self, adj: Adjacency) -> "Structure":
        """The part for the first rows of the graph, as the later layers of a receptive field need it."""
        if adj.num_entries == self.adj.num_entries:
            return self
        return Structure(adj, self.score[: adj.num_entries], self.attention[: adj.num_entries])


@dataclass(frozen=True, eq=False)
class Logits:
    """Feature attention before the softmax: LeakyReLU(a_dst_i + a_src_j + edge_ij)."""

    a_src: Tensor  # [sources, heads]
    a_dst: Tensor | None  # [targets, heads]
    edge: Tensor | None  # [entries, heads]
    negative_slope: float


@dataclass(frozen=True, eq=False)
class Weights:
    """Attention weights and their parts, in entry order."""

    alpha: Tensor  # [entries, heads]
    feature: Tensor | None = None  # [entries, heads]: f_ij
    structural: Tensor | None = None  # [entries]: s_ij; [entries, heads] if of several interventions
    mix: Tensor | None = None  # [heads, 2]: r_f, r_s

    def in_user_order(self, adj: Adjacency) -> "ConjointAttention":
        def moved(part: Tensor | None) -> Tensor | None:
            return None if part is None else adj.to_user_order(part)

        return ConjointAttention(
            adj.edge_index,
            adj.to_user_order(self.alpha),
            feature=moved(self.feature),
            structural=moved(self.structural),
            mix=self.mix,
        )


def conjoint_weights(
    adj: Adjacency,
    logits: Logits | None,
    structure: Structure | None,
    mix: Tensor | None,
    heads: int,
    with_parts: bool = False,
) -> Weights:
    """Eq. 7 if `mix` is given, Eq. 8 if only logits and structure are; else the one part there is.

    An edge of weight w has w times the share of the softmax, as w parallel edges would have.

    `with_parts` also works out f and s where the strategy itself does not need them.
    """
    if logits is None:
        assert structure is not None
        alpha = _per_head(structure.attention).expand(-1, heads).contiguous()
        return Weights(alpha, structural=structure.attention)
    weight = adj.log_weight
    if structure is None:
        alpha = _attention(adj, logits, weight)
        return Weights(alpha, feature=alpha)
    if mix is None:
        alpha = _attention(adj, logits, weighted(structure.score, weight))
        parts = (_attention(adj, logits, weight), structure.attention) if with_parts else (None, None)
        return Weights(alpha, *parts)
    if weight is None:
        alpha, feature = _attention_and_mix(adj, logits, structure.attention, mix)
    else:
        feature = _attention(adj, logits, weight)
        alpha = mix[:, 0] * feature + mix[:, 1] * _per_head(structure.attention)
    return Weights(alpha, feature, structure.attention, mix)


def weighted(score: Tensor, log_weight: Tensor | None) -> Tensor:
    """Scores of edges that weigh differently: an edge of weight w counts as w parallel ones."""
    if log_weight is None:
        return score
    return score + log_weight.to(score.dtype).view(-1, *[1] * (score.dim() - 1))


def _per_head(per_entry: Tensor) -> Tensor:
    """[entries] -> [entries, 1], for all heads; [entries, heads] stays."""
    return per_entry.unsqueeze(1) if per_entry.dim() == 1 else per_entry


def _attention(adj: Adjacency, logits: Logits, added: Tensor | None) -> Tensor:
    """One softmax of the feature logits plus whatever is added to them. -> [entries, heads]"""
    column = None if added is None else _per_head(added.to(logits.a_src.dtype))
    parts = (logits.a_src, logits.a_dst, logits.edge, column, None, logits.negative_slope)
    return ops.attention(adj, *parts, explicit=added is not None)[0]


def _attention_and_mix(
    adj: Adjacency, logits: Logits, structural: Tensor, mix: Tensor
) -> tuple[Tensor, Tensor]:
    """Eq. 4, 7 in one pass. -> alpha and f, [entries, heads]"""
    column = _per_head(structural.to(logits.a_src.dtype))
    parts = (logits.a_src, logits.a_dst, logits.edge, column, mix, logits.negative_slope)
    return ops.attention(adj, *parts, explicit=False)


class ConjointAttention(tuple[Tensor, Tensor]):
    """`(edge_index, alpha)`, as PyG's GATConv returns it, with the parts of alpha as attributes.

    All weights are before dropout, so those of one listener sum to 1. Rows stand beside `edge_index`: the
    user's edges in the user's order, then the self-loops that the layer added.
    """

    edge_index: Tensor  # [2, edges]
    conjoint: Tensor  # [edges, heads]: alpha, what the layer aggregates with
    feature: Tensor | None  # [edges, heads]: f_ij (Eq. 4)
    structural: Tensor | None  # [edges]: s_ij (Eq. 5); [edges, heads] if of several interventions
    mix: Tensor | None  # [heads, 2]: r_f, r_s (Eq. 6); implicit strategy only

    def __new__(cls, edge_index: Tensor, alpha: Tensor, **parts: Tensor | None) -> "ConjointAttention":
        return super().__new__(cls, (edge_index, alpha))

    def __init__(
        self,
        edge_index: Tensor,
        alpha: Tensor,
        *,
        feature: Tensor | None = None,
        structural: Tensor | None = None,
        mix: Tensor | None = None,
    ) -> None:
        self.edge_index, self.conjoint = edge_index, alpha
        self.feature, self.structural, self.mix = feature, structural, mix

    def sums(self) -> Tensor:
        """The weights of each listener added up, 1 for every listener with an edge. [targets, heads]"""
        targets = self.edge_index[1]
        out = self.conjoint.new_zeros(int(targets.max()) + 1 if targets.numel() else 0, self.conjoint.size(1))
        return torch.index_add(out, 0, targets, self.conjoint)
