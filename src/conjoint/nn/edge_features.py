"""Edge features as a part of the feature attention, as in GATConv's `edge_dim`."""

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from ..errors import InputError
from ..graph.adjacency import Adjacency


def edge_logits(
    adj: Adjacency,
    edge_attr: Tensor | None,
    linear: Linear | None,
    att: Tensor | None,  # [1, heads, channels]
    fill_value: float | str,
) -> Tensor | None:
    """<W_e e_ij, att> for every entry. -> [entries, heads], or None without edge features

    W_e and att are folded into one [edge_dim, heads] matrix first, so nothing of entries x heads x channels
    is made.
    """
    if linear is None or att is None:
        if edge_attr is not None:
            raise InputError("edge_attr: given, but the layer was made without edge_dim; pass edge_dim=")
        return None
    if edge_attr is None:
        raise InputError("edge_attr: missing; the layer was made with edge_dim, so every edge needs features")
    edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
    heads, channels = att.shape[1:]
    weight = linear.weight.view(heads, channels, -1)
    if edge_attr.shape != (adj.num_edges, weight.size(2)):
        raise InputError(
            f"edge_attr: it has shape {tuple(edge_attr.shape)}; expected one row for each of the "
            f"{adj.num_edges} edges and {weight.size(2)} columns"
        )
    entries = adj.from_user_order(edge_attr, _loop_features(adj, edge_attr, fill_value))
    return entries @ torch.einsum("hcd,hc->dh", weight, att[0])


def _loop_features(adj: Adjacency, edge_attr: Tensor, fill_value: float | str) -> Tensor:
    """Features of the added self-loops. [num_loops, edge_dim]"""
    out = edge_attr.new_zeros(adj.num_loops, edge_attr.size(1))
    if not isinstance(fill_value, str):
        return out + fill_value
    if fill_value != "mean":
        raise InputError(f"fill_value: {fill_value!r} is unknown; choose 'mean' or a number")
    if adj.num_loops == 0:
        return out
    kept = edge_attr if adj.kept is None else edge_attr[adj.kept]
    targets = adj.edge_index[1, : kept.size(0)]
    count = torch.bincount(targets, minlength=adj.num_loops).clamp(min=1).to(kept.dtype)
    return out.index_add(0, targets, kept) / count.unsqueeze(1)
