"""From logits and structural scores to conjoint attention weights (Eq. 4-8), and how they leave a layer."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..graph.adjacency import Adjacency, derived
from ..graph.sparse import csr_tensor
from . import ops

# Adam moves any parameter by about its rate per step, whatever the gradient. Three times that lets an
# uninformative intervention fall to a few percent before the network has learnt its training nodes.
SPEED = 3.0


class Structure:
    """Structural scores C_ij of one graph and one step, shared by all layers and heads.

    Of k interventions there are k columns, [entries, k], until a layer has joined them to one per head.
    """

    def __init__(self, adj: Adjacency, score: Tensor, attention: Tensor | None = None) -> None:
        self.adj, self.score = adj, score  # score: [entries]
        if attention is not None:
            self.__dict__["attention"] = attention

    @derived
    def attention(self) -> Tensor:
        """Eq. 5: s_ij, in which an edge of weight w counts as w parallel ones. [entries]"""
        return ops.edge_softmax(self.adj, weighted(self.score, self.adj.log_weight))

    def first(self, adj: Adjacency) -> "Structure":
        """The part for the first rows of the graph, as the later layers of a receptive field need it."""
        if adj.num_entries == self.adj.num_entries:
            return self
        return Structure(adj, self.score[: adj.num_entries], self.attention[: adj.num_entries])


class FactorStructure(Structure):
    """Scores <V_i, V_j>, made when somebody reads them; a layer that alone does makes them by itself."""

    def __init__(self, adj: Adjacency, factors: Tensor) -> None:
        self.adj, self.factors = adj, factors  # [num_src, rank]

    @derived
    def both(self) -> tuple[Tensor, Tensor]:
        return ops.factor_attention(self.adj, self.factors)

    @derived
    def score(self) -> Tensor:
        return self.both[0]

    @derived
    def attention(self) -> Tensor:
        return self.both[1]


class ScaledStructure(Structure):
    """Scores that every head multiplies by a factor of its own, [heads]."""

    def __init__(self, adj: Adjacency, unscaled: Tensor, factor: Tensor) -> None:
        self.adj, self.unscaled, self.factor = adj, unscaled, factor

    @derived
    def score(self) -> Tensor:
        """[entries, heads]"""
        return ops.scaled(self.adj, self.unscaled, self.factor)

    @derived
    def attention(self) -> Tensor:
        """[entries, heads]"""
        if self.adj.log_weight is not None:
            return super().attention
        return ops.scaled_softmax(self.adj, self.unscaled, self.factor)


class ViewWeights(nn.Module):
    """How much each of several interventions counts in a layer: learnt, and never negative.

    Implicit (and structural): shares of r_s, from a softmax per head, so that with (r_f, r_s) of Eq. 6 the
    attentions of features and of k interventions have k + 1 weights of sum 1. Explicit: factors of the
    scores, starting at 1; a score that misleads can be turned down to nothing, but none can be turned around.
    These are one per layer: few labels suffice for all heads together, not for each.
    """

    def __init__(self, count: int, groups: int, explicit: bool) -> None:
        super().__init__()
        self.explicit = explicit
        self.logit = nn.Parameter(torch.zeros(1 if explicit else groups, count))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.logit)

    @property
    def weight(self) -> Tensor:
        """[groups, k]"""
        logit = SPEED * self.logit
        return logit.exp() if self.explicit else logit.softmax(dim=-1)

    def join(self, structure: Structure) -> Structure:
        """One score or one attention per head in place of one per intervention."""
        if structure.score.dim() == 1:  # given from outside, joined already
            return structure
        adj, score, weight = structure.adj, structure.score, self.weight.t()
        if self.explicit:
            return Structure(adj, score @ weight.to(score.dtype))
        attention = structure.attention
        return Structure(adj, score, attention @ weight.to(attention.dtype))


@dataclass(frozen=True, eq=False)
class Logits:
    """Feature attention before the softmax: LeakyReLU(a_dst_i + a_src_j + edge_ij)."""

    a_src: Tensor  # [sources, heads]
    a_dst: Tensor | None  # [targets, heads]
    edge: Tensor | None  # [entries, heads]
    negative_slope: float

    def attention(
        self, adj: Adjacency, structural: Tensor | None = None, mix: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """alpha and f. With a mix, `structural` is s_ij (Eq. 7), else C_ij (Eq. 8). [entries, heads] both"""
        column = None if structural is None else _per_head(structural.to(self.a_src.dtype))
        return ops.attention(adj, self.a_src, self.a_dst, self.edge, column, mix, self.negative_slope)


class Weights(NamedTuple):
    """Attention weights and their parts, in entry order."""

    alpha: Tensor  # [entries, heads]
    feature: Tensor | None = None  # [entries, heads]: f_ij
    structural: Tensor | None = None  # [entries]: s_ij; [entries, heads] if of several interventions
    mix: Tensor | None = None  # [heads, 2]: r_f, r_s


def conjoint_weights(
    adj: Adjacency,
    logits: Logits | None,
    structure: Structure | None,
    mix: Tensor | None,
    heads: int,
    parts: bool,
) -> Weights:
    """Eq. 7 if `mix` is given, Eq. 8 if only logits and structure are; else the one part there is.

    An edge of weight w has w times the share of the softmax, as w parallel edges would have.
    `parts`: also work out f and s where the strategy itself does not need them.
    """
    weight = adj.log_weight
    if logits is None:
        assert structure is not None
        alpha = _per_head(structure.attention).expand(-1, heads).contiguous()
        return Weights(alpha, structural=structure.attention)
    if structure is None:
        alpha = logits.attention(adj, weight)[0]
        return Weights(alpha, feature=alpha)
    if mix is None:
        alpha = logits.attention(adj, weighted(structure.score, weight))[0]
        if not parts:
            return Weights(alpha)
        return Weights(alpha, logits.attention(adj, weight)[0], structure.attention)
    if weight is None:
        alpha, feature = logits.attention(adj, structure.attention, mix)
    else:
        feature = logits.attention(adj, weight)[0]
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


class ConjointAttention(tuple[Tensor, Tensor]):
    """`(edge_index, alpha)`, as PyG's GATConv returns it, with the parts of alpha as attributes. For a graph
    that came in as a sparse adjacency it is `(adjacency with the weights, alpha)`, also as GATConv has it.

    All weights are before dropout, so those of one target sum to 1. Rows stand beside `edge_index`: the
    user's edges in the user's order, then the self-loops that the layer added; of a sparse adjacency, row by
    row, as its values.
    """

    edge_index: Tensor  # [2, edges]
    conjoint: Tensor  # [edges, heads]: alpha, what the layer aggregates with
    feature: Tensor | None  # [edges, heads]: f_ij (Eq. 4)
    structural: Tensor | None  # [edges]: s_ij (Eq. 5); [edges, heads] if of several interventions
    mix: Tensor | None  # [heads, 2]: r_f, r_s (Eq. 6); implicit strategy only

    def __new__(
        cls,
        edge_index: Tensor,
        alpha: Tensor,
        *,
        feature: Tensor | None = None,
        structural: Tensor | None = None,
        mix: Tensor | None = None,
        sparse: Tensor | None = None,
    ) -> "ConjointAttention":
        made = super().__new__(cls, (edge_index if sparse is None else sparse, alpha))
        made.edge_index, made.conjoint = edge_index, alpha
        made.feature, made.structural, made.mix = feature, structural, mix
        return made

    @classmethod
    def of(
        cls, adj: Adjacency, weights: Weights, layout: torch.layout = torch.strided
    ) -> "ConjointAttention":
        """Weights of the entries, brought into the user's order; of a sparse adjacency they have it."""
        if layout != torch.strided:
            size = (adj.num_dst, adj.num_src, weights.alpha.size(1))
            edges = torch.stack([adj.col, adj.row])
            if layout == torch.sparse_coo:
                sparse = torch.sparse_coo_tensor(
                    edges.flip(0), weights.alpha, size, is_coalesced=True, check_invariants=False
                )
            else:
                sparse = csr_tensor(adj.rowptr, adj.col, weights.alpha, size)
            alpha, feature, structural, mix = weights
            return cls(edges, alpha, feature=feature, structural=structural, mix=mix, sparse=sparse)
        user, *parts = (None if part is None else adj.to_user_order(part) for part in weights[:3])
        assert user is not None
        return cls(adj.edge_index, user, feature=parts[0], structural=parts[1], mix=weights.mix)

    def sums(self) -> Tensor:
        """The weights of each target added up, 1 for every target with an edge. [targets, heads]"""
        targets = self.edge_index[1]
        out = self.conjoint.new_zeros(int(targets.max()) + 1 if targets.numel() else 0, self.conjoint.size(1))
        return torch.index_add(out, 0, targets, self.conjoint)
