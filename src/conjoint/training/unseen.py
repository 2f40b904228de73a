"""Nodes that come after training: a network asked about a graph that has grown."""

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import InputError
from ..graph.adjacency import adjacency
from ..graph.sparse import rows
from ..nn.fold_in import fold_in
from ..nn.model import NodeModel
from .config import TrainConfig
from .fitted import predict_proba


def predict_grown(model: NodeModel, before: Data, after: Data, config: TrainConfig) -> Tensor:
    """Class probabilities of every node of `after`, old ones first. -> [nodes of after, classes]

    Nothing is trained: interventions get rows for the new nodes (`conjoint.nn.fold_in`), all weights stay.
    """
    known, nodes = int(before.num_nodes or 0), int(after.num_nodes or 0)
    if before.x is None or after.x is None or before.edge_index is None or after.edge_index is None:
        raise InputError("before, after: both graphs need features and edges")
    if after.x.size(1) != before.x.size(1):
        raise InputError(
            f"after.x has {after.x.size(1)} columns, the network reads {before.x.size(1)}; make the new "
            "nodes' features in the same way as those of training"
        )
    folded = fold_in(model, adjacency(before.edge_index, known), adjacency(after.edge_index, nodes))
    return predict_proba(folded, after, replace(config, row_normalise=_decided(before, config)))


def _decided(before: Data, config: TrainConfig) -> str:
    """What "auto" meant in training: a new node's features must not change how the old ones are read."""
    if config.row_normalise != "auto":
        return config.row_normalise
    stored = before.x.values() if before.x.layout == torch.sparse_csr else before.x
    return "never" if bool((stored < 0).any()) else "always"


def without_nodes(data: Data, removed: Tensor) -> tuple[Data, Tensor]:
    """The graph without some nodes and their edges, and the old places of those that stayed.

    Put in front of `removed`, they give the order in which `predict_grown` expects the nodes of the whole.
    """
    nodes = int(data.num_nodes or 0)
    stays = torch.ones(nodes, dtype=torch.bool)
    stays[removed] = False
    kept = stays.nonzero().squeeze(1)
    return reordered(data, kept), kept


def reordered(data: Data, order: Tensor) -> Data:
    """The part of the graph on the nodes `order`, numbered in that order, without published splits."""
    nodes = int(data.num_nodes or 0)
    place = torch.full((nodes,), -1, dtype=torch.int64)
    place[order] = torch.arange(order.numel())
    edges = place[data.edge_index]
    inside = (edges >= 0).all(dim=0)
    made = Data(x=rows(data.x, order), edge_index=edges[:, inside], y=data.y[order])
    made.num_nodes = order.numel()
    if data.edge_weight is not None:
        made.edge_weight = data.edge_weight[inside]
    if getattr(data, "node_ids", None) is not None:
        made.node_ids = data.node_ids[order.numpy()]
    made.class_names, made.name = getattr(data, "class_names", None), getattr(data, "name", None)
    return made
