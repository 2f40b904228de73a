"""What training gives, and the questions asked of it afterwards."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..data.splits import Split
from ..errors import InputError
from ..evaluation.metrics import accuracy, macro_f1
from ..nn.model import NodeModel
from ..products import steady_products
from .config import TrainConfig
from .inputs import prepare


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model, with the weights that the selection rule chose.

    `history` has one row per epoch, `metrics` is the row of the chosen one; neither knows the test nodes
    unless the rule itself looks at them (then each row says so).
    """

    model: NodeModel
    config: TrainConfig
    history: list[dict[str, Any]] = field(repr=False)
    best_epoch: int
    stopped: str  # "patience" or "epochs"

    @property
    def metrics(self) -> dict[str, Any]:
        return self.history[self.best_epoch - 1]


def predict_proba(model: NodeModel, data: Data, config: TrainConfig) -> Tensor:
    """Class probabilities of every node, features treated as in training. -> [nodes, classes]"""
    inputs = prepare(model, data, config)
    with steady_products(len(inputs.y)):
        return model.probabilities(inputs.x, inputs.graph)


@torch.no_grad()
def embed(model: NodeModel, data: Data, config: TrainConfig) -> Tensor:
    """The last hidden representation of every node. -> [nodes, hidden]"""
    inputs = prepare(model, data, config)
    was_training = model.training
    model.eval()
    try:
        with steady_products(len(inputs.y)):
            return model.embed(inputs.x, inputs.graph)
    finally:
        model.train(was_training)


def evaluate(fitted: Fitted, data: Data, split: Split) -> dict[str, Any]:
    """One result row. This is the call that opens the gate to the test nodes.

    `all_accuracy` is taken over every labelled node, training nodes included: the paper's "clustering".
    """
    predicted = predict_proba(fitted.model, data, fitted.config).argmax(dim=1).cpu()
    return result_row(fitted, predicted, data.y.cpu(), split)


def result_row(fitted: Fitted, predicted: Tensor, y: Tensor, split: Split) -> dict[str, Any]:
    """The row of `evaluate`, from the predicted class of every node; it opens the same gate."""
    test = split.reveal_test().cpu()
    if test.numel() == 0:
        raise InputError(f"split {split.name!r} has no test nodes, so there is nothing to evaluate on")
    parts = {
        "train": split.train.cpu(),
        "val": split.val.cpu(),
        "test": test,
        "all": (y >= 0).nonzero().squeeze(1),
    }
    row: dict[str, Any] = {
        "split": split.name,
        "split_seed": split.seed,
        "seed": fitted.config.seed,
        "rule": fitted.config.rule,
        "saw_test": fitted.config.saw_test,
        "best_epoch": fitted.best_epoch,
        "epochs": len(fitted.history),
        "stopped": fitted.stopped,
        "val_loss": fitted.metrics["val_loss"],
    }
    for part, nodes in parts.items():
        row[f"{part}_accuracy"] = accuracy(y[nodes].numpy(), predicted[nodes].numpy())
    row["test_macro_f1"] = macro_f1(y[test].numpy(), predicted[test].numpy())
    layers = fitted.model.intervention_weights()
    if layers and len(layers[0].keys() - {"features"}) > 1:  # several were weighed against each other
        row["intervention_weights"] = [
            {name: round(float(heads.mean()), 4) for name, heads in layer.items()} for layer in layers
        ]
    return row
