"""The conjoint attention layer: PyG's GATConv, listening to structure as well as features."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot, zeros
from torch_geometric.typing import OptTensor, Size

from ..errors import InputError
from ..graph.adjacency import Adjacency, adjacency
from . import checks, orders, reference
from .attention import ConjointAttention, Structure, Weights
from .edge_features import edge_logits
from .interventions import EdgeScores, Intervention, align_scores
from .orders import Dropout
from .randomness import draw_seed
from .views import ViewWeights

Strategy = Literal["implicit", "explicit", "structural"]
STRATEGIES = ("implicit", "explicit", "structural")


class CATConv(MessagePassing):
    r"""The conjoint attention layer of "Learning Conjoint Attentions for Graph Neural Nets" (He, Ong, Bai).

    .. math::
        x'_i = \sum_{j \in N_i} \alpha_{ij} W x_j + \frac{\epsilon}{|N_i|} W x_i

    where :math:`N_i` includes i itself, and alpha joins GAT's feature attention f with the structural
    attention :math:`s_{ij} = \mathrm{softmax}_{j \in N_i}(C_{ij})` of an intervention C:

    - implicit: :math:`\alpha = r_f f + r_s s`, with :math:`(r_f, r_s) = \mathrm{softmax}(g_f, g_s)` learnt;
    - explicit: :math:`\alpha \propto f \cdot s`, computed as one softmax of the summed logits;
    - structural: :math:`\alpha = s` (a control: features do not take part).

    Args:
        in_channels: size of the input features; a tuple (source, target) if bipartite; -1 to infer it.
        out_channels: size of each head's output.
        heads: number of attention heads.
        concat: concatenate the heads (else average them).
        negative_slope: LeakyReLU's slope in the feature attention.
        dropout: dropout on the attention weights in training.
        add_self_loops: let every node listen to itself, once. Must be False for bipartite graphs.
        edge_dim: size of edge features, which then take part in the feature attention.
        fill_value: edge features of added self-loops: "mean" of a node's incoming ones, or a number.
        bias: add a learnt bias.
        residual: add a learnt linear map of the node's own input to the output; "per-head" gives every head
            its own, also where heads are averaged (DGL's way, and that of the paper's OGB-Arxiv model).
        strategy: "implicit", "explicit" or "structural".
        intervention: an `Intervention`, or one number per edge as a tensor. None: feature attention alone.
            `Several([...])`: the layer learns, per head, how much each of them counts (`views.weight`).
        self_term: add the term with epsilon. In a bipartite graph it reads the target's own features.
        self_dropout: dropout on that term in training (the authors' release uses 0.9; the paper has none).
        per_head: one (g_f, g_s) and one epsilon per head; False: one per layer.
        **kwargs: further arguments of PyG's `MessagePassing`.

    Shapes:
        - input: x [nodes, in], or ([sources, in], [targets, in]); edge_index [2, edges]; edge_attr [edges, D]
        - output: [targets, heads * out] if concat, else [targets, out]
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | str = "mean",
        bias: bool = True,
        residual: bool | Literal["per-head"] = False,
        *,
        strategy: Strategy = "implicit",
        intervention: Intervention | Tensor | None = None,
        self_term: bool = True,
        self_dropout: float = 0.0,
        per_head: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("aggr", "add")
        super().__init__(node_dim=0, **kwargs)
        checks.positive(out_channels=out_channels, heads=heads)
        checks.share(dropout=dropout, self_dropout=self_dropout)
        checks.one_of("strategy", strategy, STRATEGIES)
        checks.one_of("aggr", kwargs["aggr"], ("add",))
        if strategy == "structural" and intervention is None:
            raise InputError("strategy: 'structural' attends to an intervention alone; pass intervention=")
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops, self.edge_dim, self.fill_value = add_self_loops, edge_dim, fill_value
        self.residual, self.strategy = residual, strategy
        self.self_dropout, self.per_head = self_dropout, per_head
        self.intervention = EdgeScores(intervention) if isinstance(intervention, Tensor) else intervention
        self._seen: tuple[Tensor, int, tuple[int, int], Adjacency] | None = None

        # One W for nodes of one kind, two for a bipartite graph, under GATConv's names.
        in_src, in_dst = (in_channels, None) if isinstance(in_channels, int) else in_channels
        self.lin = _linear(in_src, heads * out_channels) if in_dst is None else None
        self.lin_src = None if in_dst is None else _linear(in_src, heads * out_channels)
        self.lin_dst = None if in_dst is None else _linear(in_dst, heads * out_channels)
        hears_features = strategy != "structural"
        self.att_src = _parameter(1, heads, out_channels) if hears_features else None
        self.att_dst = _parameter(1, heads, out_channels) if hears_features else None
        self.lin_edge = None if edge_dim is None else _linear(edge_dim, heads * out_channels)
        self.att_edge = None if edge_dim is None else _parameter(1, heads, out_channels)

        # g_f and g_s of Eq. 6, and the logit of epsilon, which keeps it inside (0, 1).
        groups = heads if per_head else 1
        mixes = strategy == "implicit" and intervention is not None
        self.mix_logit = _parameter(groups, 2) if mixes else None
        views = 1 if self.intervention is None else self.intervention.count
        self.views = ViewWeights(views, groups, strategy == "explicit") if views > 1 else None
        self.eps_logit = _parameter(groups) if self_term else None

        total = heads * out_channels if concat else out_channels
        res_width = heads * out_channels if residual == "per-head" else total
        self.res = _linear(in_src if in_dst is None else in_dst, res_width) if residual else None
        self.bias = _parameter(total) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the layer's parameters anew. An intervention has its own `reset_parameters`."""
        super().reset_parameters()
        for linear in (self.lin, self.lin_src, self.lin_dst, self.lin_edge, self.res):
            if linear is not None:
                linear.reset_parameters()
        for att in (self.att_src, self.att_dst, self.att_edge):
            glorot(att)
        for starts_at_zero in (self.mix_logit, self.eps_logit, self.bias):
            zeros(starts_at_zero)
        if self.views is not None:
            self.views.reset_parameters()

    @property
    def mix(self) -> Tensor | None:
        """(r_f, r_s) of Eq. 6 for every head. [heads, 2]"""
        return reference.shares(self.mix_logit, None, self.heads)[0]

    @property
    def eps(self) -> Tensor | None:
        """Epsilon of Eq. 9 for every head. [heads]"""
        return reference.shares(None, self.eps_logit, self.heads)[1]

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Tensor | Adjacency,
        edge_attr: OptTensor = None,
        size: Size = None,
        return_attention_weights: bool | None = None,
        *,
        score: Tensor | Structure | None = None,
        n_id: Tensor | None = None,
        x_dropout: Dropout | None = None,
    ) -> Tensor | tuple[Tensor, ConjointAttention]:
        """Run the layer.

        Args:
            x: node features (dense, or sparse CSR), or a pair (sources, targets).
            edge_index: PyG's edge_index, `EdgeIndex`, a torch sparse adjacency, or an `Adjacency`, whose
                self-loops are taken as they are.
            edge_attr: edge features, if `edge_dim` is set.
            size: (sources, targets), checked against x.
            return_attention_weights: also return a `ConjointAttention`.
            score: C_ij computed outside instead of by the layer's own intervention: one number per edge of
                `edge_index`, or a `Structure`. Lets several layers share one score.
            n_id: global ids of the rows of x, if they are part of the graph of the intervention.
            x_dropout: share and seed of a dropout of sparse x, made while it is multiplied with W.
        """
        x_src, x_dst = checks.feature_pair(x)
        if x_dropout is not None and x_src.layout != torch.sparse_csr:
            raise InputError("x_dropout: it is for sparse x; drop dense features before they come in")
        if isinstance(edge_index, Adjacency):
            adj = edge_index
            checks.rows(adj, x_src, None if x_dst is x_src else x_dst)
        else:
            adj = self._adjacency(edge_index, x_src, x_dst, size)
            checks.finite(x_src)
        structure = self._structure(adj, (x_src, x_dst), score, n_id)
        if structure is not None and self.views is not None:
            structure = self.views.join(structure)
        logit = edge_logits(adj, edge_attr, self.lin_edge, self.att_edge, self.fill_value)

        with_parts = bool(return_attention_weights)
        weights: Weights | None
        if orders.aggregates_first(self, x_src, x_dst):
            out, weights = orders.aggregate_first(self, adj, x_src, structure, logit, with_parts)
        else:
            projected = orders.projected(self, x_src, x_dst, x_dropout)
            out, weights = orders.transform_first(self, adj, *projected, structure, logit, with_parts)
        res = None
        if self.res is not None and x_dst is not None:
            res = orders.project(self.res, x_dst, x_dropout)[: adj.num_dst]
        if res is not None and res.size(1) == self.heads * self.out_channels:
            out, res = out + res.view_as(out), None
        merged = self.concat or out.size(1) == 1
        out = out.flatten(1) if merged else out.mean(dim=1)  # [targets, total]
        if res is not None:
            out = out + res
        if self.bias is not None:
            out = out + self.bias
        return (out, weights.in_user_order(adj)) if weights is not None and return_attention_weights else out

    def pass_messages(self, adj: Adjacency, alpha: Tensor, x: Tensor) -> Tensor:
        """The sum by PyG's own machinery, which looks for the call of `propagate` in this class."""
        pair, size = (x, x[: adj.num_dst]), (adj.num_src, adj.num_dst)
        return self.propagate(adj.edge_index, x=pair, alpha=adj.to_user_order(alpha), size=size)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * x_j

    @property
    def is_watched(self) -> bool:
        on_message = self._message_forward_pre_hooks or self._message_forward_hooks
        on_propagate = self._propagate_forward_pre_hooks or self._propagate_forward_hooks
        return bool(self.explain or on_message or on_propagate)

    @property
    def drops_self_term(self) -> bool:
        return self.training and self.self_dropout > 0.0 and self.eps_logit is not None

    def attention_drop(self, like: Tensor) -> tuple[float, Tensor | None]:
        dropout = self.dropout if self.training else 0.0
        return dropout, draw_seed(like.device) if dropout > 0.0 else None

    def self_drop(self, like: Tensor) -> tuple[float, Tensor | None]:
        return (self.self_dropout, draw_seed(like.device)) if self.drops_self_term else (0.0, None)

    def _structure(
        self,
        adj: Adjacency,
        x: tuple[Tensor, Tensor | None],
        score: Tensor | Structure | None,
        n_id: Tensor | None,
    ) -> Structure | None:
        if score is not None and self.strategy == "implicit" and self.mix_logit is None:
            raise InputError(
                "score: the implicit strategy mixes it in with r_f and r_s, which a layer without an "
                "intervention does not have; pass intervention=Constant(), or strategy='explicit'"
            )
        if isinstance(score, Structure):
            return score.first(adj)
        if score is not None:
            return Structure(adj, align_scores(adj, score))
        if self.intervention is None:
            return None
        if x[0] is not x[1] and n_id is None:
            return Structure(adj, self.intervention.between(adj, *x))
        return Structure(adj, self.intervention(adj, x[0], n_id))

    @torch.compiler.disable
    def _adjacency(self, edges: Tensor, x_src: Tensor, x_dst: Tensor | None, size: Size) -> Adjacency:
        """The edges sorted by listener; kept for as long as the same edge_index comes in."""
        found = (x_src.size(0), None if x_dst is None else x_dst.size(0))
        count = checks.sizes(size, found) if size is not None else (found[0], _targets(edges, found))
        if self.add_self_loops and x_dst is not x_src:
            raise InputError(
                f"add_self_loops=True: the graph is bipartite ({count[0]} sources, {count[1]} targets), so a "
                "node has no loop to itself; pass add_self_loops=False"
            )
        version = -1 if edges.is_inference() else edges._version
        if self._seen is not None and version >= 0:
            seen, seen_version, seen_count, kept = self._seen
            if seen is edges and seen_version == version and seen_count == count:
                return kept
        made = adjacency(edges, count, self_loops=self.add_self_loops, flow=self.flow)
        self._seen = (edges, version, count, made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}  # a copy of the layer should not carry a graph along

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, "
            f"strategy={self.strategy!r}, intervention={type(self.intervention).__name__})"
        )


def _targets(edges: Tensor, found: tuple[int, int | None]) -> int:
    """The number of targets, where only the sources have features: as many as the edges name."""
    if found[1] is not None:
        return found[1]
    return int(edges[1].max()) + 1 if edges.layout == torch.strided and edges.numel() else found[0]


def _linear(in_channels: int, out_channels: int) -> Linear:
    return Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")


def _parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape))
