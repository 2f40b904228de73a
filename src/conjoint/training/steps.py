"""What one epoch computes on a graph in memory: all training nodes at once, or batches that the caller makes.

All at once means the whole graph, or only the part of it that the training nodes' logits depend on.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import InputError
from ..graph.adjacency import Adjacency
from ..graph.field import receptive_field
from ..graph.graph import Graph, as_graph
from ..graph.sparse import rows
from ..graph.splits import Split
from ..nn.model import NodeModel
from .config import TrainConfig
from .loss import cross_entropy, label_weights, must_be_finite, objective, perturbation
from .optimizer import make_optimizer

# Cutting rows out of the graph costs a little in every layer; it pays when it saves at least this share.
FIELD_PAYS_BELOW = 0.8
Row = dict[str, Any]


class Batch(NamedTuple):
    """Some target nodes, what their logits depend on, and their labels.

    `pick` selects the targets among the rows that the model returns; None: it returns exactly the targets.
    All returned rows take part in the consistency term, if training has one.
    """

    x: Tensor  # [nodes, features], dense or sparse CSR
    graph: Any  # as `NodeModel.prepare` gave it, or a `Field` of it
    labels: Tensor  # [targets], -1 = unlabelled
    pick: Tensor | None = None
    weight: Tensor | None = None  # [targets], how much each label counts; None: all alike

    def logits(self, model: NodeModel) -> Tensor:
        return self.targets(model(self.x, self.graph))

    def targets(self, out: Tensor) -> Tensor:
        """The targets' rows among those that the model returned."""
        return out if self.pick is None else out[self.pick]


Batches = Callable[[int], Iterable[Batch]]  # epoch -> batches of that epoch


def whole_graph(model: NodeModel, graph: Graph, config: TrainConfig) -> Batch:
    """All nodes: features normalised as the settings say, all on the model's device and in its form."""
    graph, like = as_graph(graph), next(model.parameters())
    x = graph.inputs(config.row_normalise, like)
    prepared = _form_of(graph, model, like.device)
    model.observe(x, prepared)
    return Batch(x, prepared, graph.y.to(like.device))


def _form_of(graph: Graph, model: NodeModel, device: torch.device) -> Any:
    """The graph as the model works on it: made once for all models of its form."""
    if model.form is Adjacency and device.type == "cpu":
        return graph.adjacency

    def make() -> Any:
        weight = None if graph.edge_weight is None else graph.edge_weight.to(device)
        return model.prepare(graph.edge_index.to(device), graph.num_nodes, weight)

    return make() if model.form is None else graph.once(("form", model.form, device), make)


def part_of(whole: Batch, nodes: Tensor, model: NodeModel, field: str) -> Batch:
    """The nodes as one batch: on their receptive field where that is asked for or pays, else on all of it.

    The choice depends on the graph alone, never on timing, because dropout draws differ between the two.
    """
    nodes = nodes.to(whole.labels.device)
    labels, graph = whole.labels[nodes], whole.graph
    weight = None if whole.weight is None else whole.weight[nodes]
    can = model.reach is not None and isinstance(graph, Adjacency)
    if field == "receptive" and not can:
        raise InputError(f"field='receptive': {type(model).__name__} needs the whole graph; use field='auto'")
    if field != "whole" and can:
        assert model.reach is not None
        cut = receptive_field(graph, nodes, model.reach)
        if field == "receptive" or cut.num_entries < FIELD_PAYS_BELOW * model.reach * graph.num_entries:
            return Batch(rows(whole.x, cut.n_id), cut, labels, None, weight)
    return Batch(whole.x, graph, labels, nodes, weight)


def with_unlabelled(whole: Batch, train: Tensor, model: NodeModel, config: TrainConfig) -> Batch:
    """The training nodes with the nodes that must be consistent: all, or a sample from torch's generator."""
    assert config.consistency is not None
    train, count = train.to(whole.labels.device), whole.labels.numel()
    labels, sample = whole.labels[train], config.consistency.sample
    weight = None if whole.weight is None else whole.weight[train]
    if sample == 0 or sample >= count - train.numel():
        return Batch(whole.x, whole.graph, labels, train, weight)
    order = torch.randperm(count, device=train.device)
    free = torch.ones(count, dtype=torch.bool, device=train.device)
    free[train] = False
    order = order[free[order]][:sample]
    batch = part_of(whole, torch.cat([train, order]), model, config.field)
    pick = torch.arange(train.numel(), device=train.device) if batch.pick is None else train
    return batch._replace(labels=labels, pick=pick, weight=weight)


class Steps:
    """What training repeats: one pass over the training nodes, and the evaluation of the validation nodes."""

    optimizer: torch.optim.Adam
    nodes: int  # of the graph that one step computes; decides how products are computed

    def train_epoch(self, epoch: int) -> Row:
        """One pass of gradient steps -> losses."""
        raise NotImplementedError

    def evaluate(self) -> Row:
        """Loss and accuracy on the validation nodes (and test nodes, for a rule that asks for them)."""
        raise NotImplementedError

    def gather_state(self) -> None:
        """Bring what a checkpoint needs to the process that writes it."""

    def close(self) -> None:
        """Leave the model as any other."""


class WholeSteps(Steps):
    def __init__(
        self, model: NodeModel, graph: Graph, split: Split, config: TrainConfig, batches: Batches | None
    ) -> None:
        self.model, self.config, self.nodes = model, config, graph.num_nodes
        weight = label_weights(graph, split.train, config)
        if weight is not None and batches is not None:
            raise InputError("class_weight: batches of your own carry weights themselves, as Batch.weight")
        self.whole = whole_graph(model, graph, config)
        if weight is not None:
            self.whole = self.whole._replace(weight=weight.to(self.whole.labels.device))
        self.batches = self._all_at_once(split.train) if batches is None else batches
        self.val = part_of(self.whole, split.val, model, config.field)
        self.test = None
        if config.saw_test:
            self.test = part_of(self.whole, split.reveal_test(), model, config.field)
        self.optimizer = make_optimizer(model, config)

    def _all_at_once(self, train: Tensor) -> Batches:
        """One batch per epoch: the training nodes, with those that must be consistent if there are any."""
        whole, model, config = self.whole, self.model, self.config
        if config.consistency is None:
            batch = part_of(whole, train, model, config.field)
        elif config.consistency.sample:
            return lambda epoch: [with_unlabelled(whole, train, model, config)]
        else:
            batch = with_unlabelled(whole, train, model, config)
        return lambda epoch: [batch]

    def train_epoch(self, epoch: int) -> Row:
        """Losses are means over the epoch's targets."""
        model, config = self.model.train(), self.config
        perturb = perturbation(config.consistency)
        sums, targets = torch.zeros(4), 0
        for batch in self.batches(epoch):
            self.optimizer.zero_grad(set_to_none=True)
            whole = None if batch.graph is self.whole.graph else self.whole.graph
            logits, penalty = model.predict_often(batch.x, batch.graph, whole, config.passes, perturb)
            if epoch == 1:
                check_labels(batch.labels, logits.size(-1))
            loss = objective(logits, batch.labels, batch.pick, penalty, config, epoch, batch.weight)
            loss.total.backward()
            if config.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            parts = torch.stack([part.detach().float() for part in loss]).cpu()
            # Before the step, so that the weights which a checkpoint may hold are never the broken ones.
            must_be_finite(float(parts[0]), "training loss", epoch, config)
            self.optimizer.step()
            sums += parts * len(batch.labels)
            targets += len(batch.labels)
        if targets == 0:
            raise InputError(
                f"epoch {epoch} has no batches; give `batches` a function that returns at least one"
            )
        names = ("loss", "prediction_loss", "penalty", "disagreement")
        row = dict(zip(names, (sums / targets).tolist(), strict=True))
        return row if config.consistency is not None else {name: row[name] for name in names[:3]}

    @torch.no_grad()
    def evaluate(self) -> Row:
        model = self.model.eval()
        logits = self.val.logits(model)
        row: Row = {
            "val_loss": float(cross_entropy(logits, self.val.labels, self.val.weight)),
            "val_accuracy": share_right(logits, self.val.labels),
        }
        if self.test is not None:
            row |= {"test_accuracy": share_right(self.test.logits(model), self.test.labels)}
            row |= {"rule": self.config.rule, "saw_test": True}
        return row


def check_labels(labels: Tensor, classes: int) -> None:
    """The model must know every class that it is to learn."""
    if labels.numel() and int(labels.min()) < 0:
        raise InputError("split.train holds a node without a label (-1); train on labelled nodes only")
    if labels.numel() and int(labels.max()) >= classes:
        raise InputError(
            f"the model has {classes} classes but a training node has class {int(labels.max())}; build it "
            "for more"
        )


def share_right(logits: Tensor, labels: Tensor) -> float:
    return int((logits.argmax(dim=1) == labels).sum()) / len(labels)
