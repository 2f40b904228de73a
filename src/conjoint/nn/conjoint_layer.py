"""The conjoint attention layer: PyG's GATConv, attending to structure as well as features.

Nothing of PyG is imported here, which takes longer than torch itself. `CATConv` of conv.py is this layer as
PyG's `MessagePassing`; networks are made of it wherever PyG is loaded, see layer_class.py.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..graph.adjacency import Adjacency, Unsorted, adjacency
from ..graph.sparse import is_sparse
from ..recording import readable
from . import checks, ops
from .attention import (
    ConjointAttention,
    FactorStructure,
    Logits,
    Structure,
    ViewWeights,
    Weights,
    conjoint_weights,
)
from .interventions import Intervention, align_scores
from .interventions.catalogue import as_intervention
from .layers import Linear, draw_dropout, glorot
from .model import Recent
from .names import Strategy

STRATEGIES = ("implicit", "explicit", "structural")
REDUCTIONS = ("add", "sum", "mean", "mul", "min", "max")  # of edge features, for `fill_value`
Dropout = tuple[float, Tensor]  # share and seed
Ends = tuple[Tensor, Tensor | None]  # of sources and of targets
Size = tuple[int, int] | None


class ConjointLayer(nn.Module):
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
        add_self_loops: let every node attend to itself, once. Must be False for bipartite graphs.
        edge_dim: size of edge features, which then take part in the feature attention.
        fill_value: edge features of added self-loops: "mean", "add", "mul", "min" or "max" of a node's
            incoming ones, or a number, or a tensor.
        bias: add a learnt bias.
        residual: add a learnt linear map of the node's own input to the output; "per-head" gives every head
            its own, also where heads are averaged (DGL's way, and that of the paper's OGB-Arxiv model).
        strategy: "implicit", "explicit" or "structural".
        intervention: an `Intervention`, one number per edge as a tensor, or the short name of one that needs
            no sizes ("fs", "smooth", "trust", ...). None: feature attention alone.
            `Several([...])`: the layer learns, per head, how much each of them counts (`views.weight`).
            One that is computed from features scores those of the first layer, so give all layers the same
            object, or call `observe` with the input features.
        self_term: add the term with epsilon. In a bipartite graph it reads the target's own features.
        self_dropout: dropout on that term in training (the authors' release uses 0.9; the paper has none).
        per_head: one (g_f, g_s) and one epsilon per head; False: one per layer.
        **kwargs: of `CATConv`, further arguments of PyG's `MessagePassing`.

    Shapes:
        - input: x [nodes, in], or ([sources, in], [targets, in]); edge_index [2, edges]; edge_attr [edges, D]
        - output: [targets, heads * out] if concat, else [targets, out]
    """

    flow = "source_to_target"

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
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool | Literal["per-head"] = False,
        *,
        strategy: Strategy = "implicit",
        intervention: Intervention | Tensor | str | None = None,
        self_term: bool = True,
        self_dropout: float = 0.0,
        per_head: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**self._base_options(kwargs))
        checks.at_least(1, out_channels=out_channels, heads=heads)
        checks.share(dropout=dropout, self_dropout=self_dropout)
        checks.one_of("strategy", strategy, STRATEGIES)
        if isinstance(fill_value, str):
            checks.one_of("fill_value", fill_value, REDUCTIONS)
        if strategy == "structural" and intervention is None:
            raise InputError("strategy: 'structural' attends to an intervention alone; pass intervention=")
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops, self.edge_dim, self.fill_value = add_self_loops, edge_dim, fill_value
        self.residual, self.strategy = residual, strategy
        self.self_dropout, self.per_head = self_dropout, per_head
        self.intervention = as_intervention(intervention)
        self._graphs: Recent[Adjacency] = Recent()
        self._checked: Recent[None] = Recent(1)  # features without NaN

        # One W for nodes of one kind, two for a bipartite graph, under GATConv's names.
        in_src, in_dst = (in_channels, None) if isinstance(in_channels, int) else in_channels
        self.lin = self._linear(in_src, heads * out_channels) if in_dst is None else None
        self.lin_src = None if in_dst is None else self._linear(in_src, heads * out_channels)
        self.lin_dst = None if in_dst is None else self._linear(in_dst, heads * out_channels)
        by_features = strategy != "structural"
        self.att_src = _parameter(1, heads, out_channels) if by_features else None
        self.att_dst = _parameter(1, heads, out_channels) if by_features else None
        self.lin_edge = None if edge_dim is None else self._linear(edge_dim, heads * out_channels)
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
        self.res = self._linear(in_src if in_dst is None else in_dst, res_width) if residual else None
        self.bias = _parameter(total) if bias else None
        self.reset_parameters()

    def _base_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """What the base class takes of the further arguments."""
        return given

    def reset_parameters(self) -> None:
        """Draw the layer's parameters anew. An intervention has its own `reset_parameters`."""
        for part in (self.lin, self.lin_src, self.lin_dst, self.lin_edge, self.res):
            if part is not None:
                part.reset_parameters()
        for att in (self.att_src, self.att_dst, self.att_edge):
            if att is not None:
                glorot(att)
        for starts_at_zero in (self.mix_logit, self.eps_logit, self.bias):
            if starts_at_zero is not None:
                nn.init.zeros_(starts_at_zero)
        if self.views is not None:
            self.views.reset_parameters()

    @property
    def mix(self) -> Tensor | None:
        """(r_f, r_s) of Eq. 6 for every head. [heads, 2]"""
        return ops.shares(self.mix_logit, None, self.heads)[0]

    @property
    def eps(self) -> Tensor | None:
        """Epsilon of Eq. 9 for every head. [heads]"""
        return ops.shares(None, self.eps_logit, self.heads)[1]

    def observe(self, x: Tensor, edge_index: Tensor | Adjacency) -> None:
        """Let the intervention score this graph by these input features, whatever the layer itself reads."""
        if self.intervention is not None:
            self.intervention.observe(self._graph(edge_index, x, x, None), x)

    def forward(
        self,
        x: Tensor | Ends,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
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
            return_attention_weights: also return a `ConjointAttention`; its first part is sparse if the
                adjacency is.
            score: C_ij computed outside instead of by the layer's own intervention: one number per edge of
                `edge_index`, or a `Structure`. Lets several layers share one score.
            n_id: global ids of the rows of x, if they are part of the graph of the intervention.
            x_dropout: share and seed of a dropout of x; of sparse x it is made while x is multiplied with W.
        """
        # 1. The graph: entries (i, j) sorted by target i. One kind of nodes: x_dst is x_src.
        x_src, x_dst = checks.feature_pair(x)  # [sources, in], [targets, in]
        if x_dropout is not None and x_dst is not x_src:
            raise InputError("x_dropout: it is for nodes of one kind; drop the features before they come in")
        adj = self._graph(edge_index, x_src, x_dst, size)

        # 2. What is known of an entry beside the features of its two ends.
        structure = self._structure(adj, (x_src, x_dst), score, n_id)  # C_ij: [entries] or [entries, heads]
        edge_logit = self._edge_logit(adj, edge_attr)  # <W_e e_ij, att_edge>: [entries, heads]

        if x_dst is x_src:  # dense features that are mostly zeros go the way of sparse ones
            x_src = x_dst = ops.without_zeros(x_src)
            if x_dropout is not None and not is_sparse(x_src):
                x_src = x_dst = ops.activate_and_drop(x_src, "none", *x_dropout)
                x_dropout = None

        # 3. Attention (Eq. 4-8), and the weighted sum over the neighbours (Eq. 9). -> [targets, heads, out]
        weights: Weights | None = None
        bias = self.bias
        with_parts = bool(return_attention_weights)
        plain = not self._drops_self_term and not self._is_watched  # nothing but the sum is wanted of Eq. 9
        self._size(self.lin, x_src)
        widens = x_src.layout == torch.strided and x_src.size(1) < self.heads * self.out_channels
        if plain and widens and x_dst is x_src and self.lin is not None:
            # 3a. W last: <W_h x, att_h> = <x, W_h^T att_h>, so nothing wider than x is summed.
            checks.width(x_src, self.lin.in_channels)
            w, logits = self.lin.weight.view(self.heads, self.out_channels, -1), None  # [heads, out, in]
            if self.att_src is not None and self.att_dst is not None:
                att = torch.cat([self.att_src, self.att_dst])
                both = x_src @ torch.einsum("hci,vhc->ivh", w, att).flatten(1)  # [sources, 2 * heads]
                a_src, a_dst = both[:, : self.heads], ops.targets(adj, both[:, self.heads :])
                logits = Logits(a_src, a_dst, edge_logit, self.negative_slope)
            weights = conjoint_weights(adj, logits, structure, self.mix, self.heads, with_parts)
            parts = (weights.alpha, x_src.unsqueeze(1), w, self.eps)
            out = ops.aggregate_and_project(adj, *parts, *draw_dropout(self, self.dropout, x_src))
        else:
            one_kind = x_dst is x_src and self.lin is not None
            fits = one_kind and adj.log_weight is None and self.strategy != "structural"
            if plain and fits and not with_parts:  # 3b. all in one operation
                within, bias = (bias, None) if self.res is None else (None, bias)
                out = self._attend(adj, x_src, x_dropout, structure, edge_logit, within, score is None)
            else:  # 3c. step by step
                h_src, h_dst = self._projected(x_src, x_dst, x_dropout)  # W x: [..., heads, out]
                logits = self._logits(adj, h_src, h_dst, edge_logit)
                weights = conjoint_weights(adj, logits, structure, self.mix, self.heads, with_parts)
                out = self._sum(adj, weights.alpha, h_src, h_dst)

        # 4. Residual, heads, bias. -> [targets, heads * out] or [targets, out]
        res = None
        if self.res is not None and x_dst is not None:
            res = self._project(self.res, x_dst, x_dropout)[: adj.num_dst]
        if res is not None and res.size(1) == self.heads * self.out_channels:  # every head has its own
            out, res = out + res.view_as(out), None
        out = out.flatten(1) if self.concat or out.size(1) == 1 else out.mean(dim=1)
        if res is not None:
            out = out + res
        if bias is not None:
            out = out + bias
        if not with_parts or weights is None:
            return out
        layout = edge_index.layout if isinstance(edge_index, Tensor) else torch.strided
        return out, ConjointAttention.of(adj, weights, layout)

    # Step 1.

    def _graph(self, edges: Tensor | Adjacency, x_src: Tensor, x_dst: Tensor | None, size: Size) -> Adjacency:
        if isinstance(edges, Adjacency):
            checks.rows(edges, x_src, None if x_dst is x_src else x_dst)
            return edges
        adj = self._sorted(edges, x_src, x_dst, size)
        if x_src.grad_fn is None:  # features, not what another layer made of them
            self._checked.get((x_src,), None, lambda: checks.finite(x_src))
        return adj

    def _sorted(self, edges: Tensor, x_src: Tensor, x_dst: Tensor | None, size: Size) -> Adjacency:
        """The edges sorted by target; kept for as long as the same edge_index comes in."""
        sources, targets = x_src.size(0), None if x_dst is None else x_dst.size(0)
        if size is not None:
            count = checks.sizes(size, (sources, targets))
        elif targets is not None:
            count = (sources, targets)
        elif edges.layout != torch.strided:  # PyG's adj_t: rows are targets
            count = (sources, edges.size(0))
        else:  # only the sources have features: there are as many targets as the edges name
            if not readable(edges):
                raise InputError("size: without features of the targets, pass size=(sources, targets)")
            count = (sources, int(edges[1].max()) + 1 if edges.numel() else sources)
        if self.add_self_loops and x_dst is not x_src:
            raise InputError(
                f"add_self_loops=True: the graph is bipartite ({count[0]} sources, {count[1]} targets), so a "
                "node has no loop to itself; pass add_self_loops=False"
            )
        loops, flow = self.add_self_loops, self.flow
        return self._graphs.get((edges,), count, lambda: adjacency(edges, count, self_loops=loops, flow=flow))

    # Step 2.

    def _structure(
        self, adj: Adjacency, ends: Ends, score: Tensor | Structure | None, n_id: Tensor | None
    ) -> Structure | None:
        x_src, x_dst = ends
        if score is not None and self.strategy == "implicit" and self.mix_logit is None:
            raise InputError(
                "score: the implicit strategy mixes it in with r_f and r_s, which a layer without an "
                "intervention does not have; pass intervention=Constant(), or strategy='explicit'"
            )
        if isinstance(score, Structure):
            made = score.first(adj)
        elif score is not None:
            made = Structure(adj, align_scores(adj, score))
        elif self.intervention is None:
            return None
        elif x_src is not x_dst and n_id is None:
            made = Structure(adj, self.intervention.between(adj, x_src, x_dst))
        elif self.strategy == "explicit":
            made = Structure(adj, self.intervention(adj, x_src, n_id))
        else:
            made = self.intervention.structure(adj, x_src, n_id)
        return made if self.views is None else self.views.join(made)

    def _edge_logit(self, adj: Adjacency, edge_attr: Tensor | None) -> Tensor | None:
        """W_e and att_edge become one [edge_dim, heads] matrix: nothing of entries x channels is made."""
        if self.lin_edge is None or self.att_edge is None:
            if edge_attr is not None:
                raise InputError("edge_attr: given, but the layer was made without edge_dim; pass edge_dim=")
            return None
        if edge_attr is None:
            raise InputError("edge_attr: missing; the layer was made with edge_dim, so edges need features")
        edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
        weight = self.lin_edge.weight.view(self.heads, self.out_channels, -1)
        if edge_attr.shape != (adj.num_edges, weight.size(2)):
            raise InputError(
                f"edge_attr: it has shape {tuple(edge_attr.shape)}; expected one row for each of the "
                f"{adj.num_edges} edges and {weight.size(2)} columns"
            )
        entries = adj.from_user_order(edge_attr, _loop_features(adj, edge_attr, self.fill_value))
        return entries @ torch.einsum("hcd,hc->dh", weight, self.att_edge[0])

    # Step 3.

    def _projected(self, x_src: Tensor, x_dst: Tensor | None, x_dropout: Dropout | None) -> Ends:
        """W x of sources and targets: one tensor where they are nodes of one kind. [nodes, heads, out]"""
        shape = (-1, self.heads, self.out_channels)
        h_src = self._project(self.lin or self.lin_src, x_src, x_dropout).view(shape)
        if x_dst is x_src and self.lin is not None:
            return h_src, h_src
        lin_dst = self.lin or self.lin_dst
        return h_src, None if x_dst is None else self._project(lin_dst, x_dst, x_dropout).view(shape)

    def _attend(
        self,
        adj: Adjacency,
        x: Tensor,
        x_dropout: Dropout | None,
        structure: Structure | None,
        edge_logit: Tensor | None,
        bias: Tensor | None,
        alone: bool,  # nobody else reads the structure
    ) -> Tensor:
        """-> [targets, heads, out]; [targets, 1, out], averaged, where no head is wanted by itself"""
        assert self.att_src is not None and self.att_dst is not None and self.lin is not None
        if x.layout == torch.strided and x_dropout is None:
            checks.width(x, self.lin.in_channels)
            h, weight = x, self.lin.weight
        else:  # sparse features are multiplied by themselves
            h, weight = self._project(self.lin, x, x_dropout).view(-1, self.heads, self.out_channels), None
        mix_logit = None if structure is None else self.mix_logit
        score, factors = None, None
        if alone and isinstance(structure, FactorStructure) and mix_logit is not None:
            factors = structure.factors.to(h.dtype)
        elif structure is not None:
            score = (structure.score if mix_logit is None else structure.attention).to(h.dtype)
        att = (self.att_src.squeeze(0), self.att_dst.squeeze(0))
        merge = not self.concat and self.residual != "per-head"  # else each head is still wanted
        parts = (*att, edge_logit, score, mix_logit, self.eps_logit, self.negative_slope)
        return ops.attend(adj, h, *parts, *draw_dropout(self, self.dropout, h), merge, bias, weight, factors)

    def _logits(
        self, adj: Adjacency, h_src: Tensor, h_dst: Tensor | None, edge_logit: Tensor | None
    ) -> Logits | None:
        if self.att_src is None or self.att_dst is None:
            return None
        att_src, att_dst = self.att_src.squeeze(0), self.att_dst.squeeze(0)  # [heads, out]
        a_dst: Tensor | None = None
        if h_dst is h_src:
            a_src, a_dst = ops.head_dots(h_src, att_src, att_dst)  # [sources, heads] both
            a_dst = ops.targets(adj, a_dst)
        else:
            a_src = ops.head_dot(h_src, att_src)
            a_dst = None if h_dst is None else ops.head_dot(ops.targets(adj, h_dst), att_dst)
        return Logits(a_src, a_dst, edge_logit, self.negative_slope)

    def _sum(self, adj: Adjacency, alpha: Tensor, h_src: Tensor, h_dst: Tensor | None) -> Tensor:
        """Eq. 9. -> [targets, heads, out]"""
        eps, (dropout, seed) = self.eps, draw_dropout(self, self.dropout, h_src)
        # The kernel's self term reads row i of the sources as target i, without dropout of its own.
        within = h_dst is h_src and not self._drops_self_term and not self._is_watched
        if not self._is_watched:
            out = ops.aggregate(adj, alpha, h_src, eps if within else None, dropout, seed)
        else:  # explainers look at messages: PyG makes them, one per edge in the user's order
            alpha = alpha if seed is None else ops.drop(alpha, dropout, seed)
            out = self._summed_messages(adj, adj.to_user_order(alpha), h_src)
        if eps is None or within or h_dst is None:
            return out
        own = ops.targets(adj, h_dst)
        own = ops.activate_and_drop(own, "none", *draw_dropout(self, self.self_dropout, own))
        share = eps / adj.degree.clamp(min=1).unsqueeze(1)  # [targets, heads]
        return out + share.unsqueeze(2).to(own.dtype) * own

    @property
    def _is_watched(self) -> bool:
        """Whether somebody looks at single messages."""
        return False

    def _summed_messages(self, adj: Adjacency, alpha: Tensor, h: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _drops_self_term(self) -> bool:
        return self.training and self.self_dropout > 0.0 and self.eps_logit is not None

    # Linear maps, whose input may be sparse.

    def _linear(self, in_channels: int, out_channels: int) -> Any:
        return Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")

    def _size(self, linear: Any, x: Tensor) -> None:
        """Give a lazy weight its shape now: the layer reads weights without calling the module."""

    def _project(self, linear: Any, x: Tensor, dropout: Dropout | None) -> Tensor:
        """W x of dense or sparse x. [nodes, in] -> [nodes, heads * out]"""
        self._size(linear, x)
        checks.width(x, linear.in_channels)
        return ops.project(x, linear.weight, *(dropout or (0.0, None)))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, "
            f"strategy={self.strategy!r}, intervention={type(self.intervention).__name__})"
        )


def _loop_features(adj: Adjacency, edge_attr: Tensor, fill_value: float | Tensor | str) -> Tensor:
    """Features of the added self-loops. [num_loops, edge_dim]"""
    if not isinstance(fill_value, str):
        fill = torch.as_tensor(fill_value, dtype=edge_attr.dtype, device=edge_attr.device)
        return fill.expand(adj.num_loops, edge_attr.size(1))
    if not isinstance(adj, Unsorted):
        kept = edge_attr if adj.kept is None else edge_attr[adj.kept]
        return _reduced(kept, adj.edge_index[1, : kept.size(0)], adj.num_loops, fill_value)
    targets = adj.row[: edge_attr.size(0)]
    if adj.own is not None:  # self-loops of the user count for a row more, which is left out
        targets = targets.masked_fill(adj.own[: edge_attr.size(0)], adj.num_loops)
    return _reduced(edge_attr, targets, adj.num_loops + 1, fill_value)[: adj.num_loops]


def _reduced(values: Tensor, index: Tensor, size: int, reduction: str) -> Tensor:
    """The rows that share an index as one row; a row that has none is 1 for a product, else 0."""
    kind = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}.get(reduction, reduction)
    start = values.new_full((size, values.size(1)), 1.0 if kind == "prod" else 0.0)
    places = index.unsqueeze(1).expand_as(values)
    return start.scatter_reduce(0, places, values, kind, include_self=kind in ("sum", "prod"))


def _parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape))
