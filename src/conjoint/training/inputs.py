"""From a graph and a list of nodes to exactly what the model must compute for them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import receptive_field
from ..graph.sparse import row_normalise, rows
from ..nn.model import NodeModel
from .config import TrainConfig

# Cutting rows out of the graph costs a little in every layer; it pays when it saves at least this share.
FIELD_PAYS_BELOW = 0.8


@dataclass(frozen=True, eq=False)
class Inputs:
    """The graph as the model reads it. Made once per run."""

    x: Tensor  # [nodes, features], dense or sparse CSR
    y: Tensor  # [nodes], -1 = unlabelled
    graph: Any


class Batch(NamedTuple):
    """Some target nodes, what their logits depend on, and their labels.

    `pick` selects the targets among the rows that the model returns; None: it returns exactly the targets.
    All returned rows take part in the consistency term, if training has one.
    """

    x: Tensor
    graph: Any
    labels: Tensor
    pick: Tensor | None = None

    def logits(self, model: NodeModel) -> Tensor:
        return self.targets(model(self.x, self.graph))

    def targets(self, out: Tensor) -> Tensor:
        """The targets' rows among those that the model returned."""
        return out if self.pick is None else out[self.pick]


def prepare(model: NodeModel, data: Data, config: TrainConfig) -> Inputs:
    """Move the graph to the model's device and into its form, features normalised as the settings say."""
    if data.x is None:
        raise InputError("data.x is None: the graph has no features; load it with features='spectral:128'")
    if data.edge_index is None or data.y is None:
        raise InputError(
            f"data.{'y' if data.edge_index is not None else 'edge_index'} is None; training needs it"
        )
    device = device_of(model)
    x = data.x.to(next(model.parameters()).dtype)  # half precision and whole numbers are read as its own kind
    if config.row_normalise == "always" or (config.row_normalise == "auto" and not _any_negative(x)):
        x = row_normalise(x)
    weight = None if data.edge_weight is None else data.edge_weight.to(device)
    graph = model.prepare(data.edge_index.to(device), int(data.num_nodes or 0), weight)
    x = x.to(device)
    model.observe(x, graph)
    return Inputs(x, data.y.to(device), graph)


def batch_of(nodes: Tensor, inputs: Inputs, model: NodeModel, field: str) -> Batch:
    """The nodes as one batch: on their receptive field where that is asked for or pays, else on all of it.

    The choice depends on the graph alone, never on timing, because dropout draws differ between the two.
    """
    nodes = nodes.to(inputs.y.device)
    labels = inputs.y[nodes]
    whole = inputs.graph
    can = model.reach is not None and isinstance(whole, Adjacency)
    if field == "receptive" and not can:
        raise InputError(f"field='receptive': {type(model).__name__} needs the whole graph; use field='auto'")
    if field != "whole" and can:
        assert model.reach is not None
        cut = receptive_field(whole, nodes, model.reach)
        if field == "receptive" or cut.num_entries < FIELD_PAYS_BELOW * model.reach * whole.num_entries:
            return Batch(rows(inputs.x, cut.n_id), cut, labels)
    return Batch(inputs.x, whole, labels, nodes)


def with_unlabelled(train: Tensor, inputs: Inputs, model: NodeModel, config: TrainConfig) -> Batch:
    """The training nodes with the nodes that must be consistent: all, or a sample from torch's generator."""
    assert config.consistency is not None
    train = train.to(inputs.y.device)
    labels, others = inputs.y[train], inputs.y.numel() - train.numel()
    if config.consistency.sample == 0 or config.consistency.sample >= others:
        return Batch(inputs.x, inputs.graph, labels, train)
    order = torch.randperm(inputs.y.numel(), device=train.device)
    free = torch.ones(order.numel(), dtype=torch.bool, device=train.device)
    free[train] = False
    order = order[free[order]][: config.consistency.sample]
    batch = batch_of(torch.cat([train, order]), inputs, model, config.field)
    pick = torch.arange(train.numel(), device=train.device) if batch.pick is None else train
    return batch._replace(labels=labels, pick=pick)


def check_labels(labels: Tensor, logits: Tensor) -> None:
    """The model must know every class that it is to learn."""
    low, high, classes = int(labels.min()), int(labels.max()), logits.size(-1)
    if low < 0:
        raise InputError("split.train holds a node without a label (-1); train on labelled nodes only")
    if high >= classes:
        raise InputError(
            f"the model has {classes} classes but a training node has class {high}; build it for more"
        )


def device_of(model: NodeModel) -> torch.device:
    return next(model.parameters()).device


def _any_negative(x: Tensor) -> bool:
    stored = x.values() if x.layout == torch.sparse_csr else x
    return bool((stored < 0).any())
