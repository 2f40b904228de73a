"""New nodes: a trained network asked about a graph to which nodes were added."""

from dataclasses import replace

import torch
from torch import Tensor

from ..errors import InputError
from ..graph.adjacency import adjacency
from ..graph.graph import Graph, as_graph
from ..graph.sparse import rows
from ..nn.model import NodeModel
from ..nn.new_nodes import with_new_nodes
from .config import TrainConfig
from .predictions import predict_proba


def predict_new_nodes(model: NodeModel, before: Graph, after: Graph, config: TrainConfig) -> Tensor:
    """Class probabilities of every node of `after`, old ones first. -> [nodes of after, classes]

    Nothing is trained: interventions get rows for the new nodes (`conjoint.nn.new_nodes`), all weights stay.
    """
    before, after = as_graph(before), as_graph(after)
    if after.num_features != before.num_features:
        raise InputError(
            f"after.x has {after.num_features} columns, the network reads {before.num_features}; make the "
            "new nodes' features in the same way as those of training"
        )
    known = adjacency(before.edge_index, before.num_nodes)
    grown = with_new_nodes(model, known, adjacency(after.edge_index, after.num_nodes))
    # What "auto" meant in training: a new node's features must not change how the old ones are read.
    decided = "always" if before.normalises(config.row_normalise) else "never"
    return predict_proba(grown, after, replace(config, row_normalise=decided))


def without_nodes(data: Graph, removed: Tensor) -> tuple[Graph, Tensor]:
    """The graph without some nodes and their edges, and the old places of those that stayed.

    Put in front of `removed`, they give the order in which `predict_new_nodes` expects the nodes of a whole.
    """
    data = as_graph(data)
    stays = torch.ones(data.num_nodes, dtype=torch.bool)
    stays[removed] = False
    kept = stays.nonzero().squeeze(1)
    return reordered(data, kept), kept


def reordered(data: Graph, order: Tensor) -> Graph:
    """The part of the graph on the nodes `order`, numbered in that order, without published splits."""
    data = as_graph(data)
    place = torch.full((data.num_nodes,), -1, dtype=torch.int64)
    place[order] = torch.arange(order.numel())
    edges = place[data.edge_index]
    inside = (edges >= 0).all(dim=0)
    return data.changed(
        given_x=rows(data.x, order),
        y=data.y[order],
        edges=edges[:, inside],
        edge_weight=None if data.edge_weight is None else data.edge_weight[inside],
        ids=None if data.ids is None else data.ids[order.numpy()],
        published={},
        node_time=None,
    )
