"""What a training gives: a network for each seed, its predictions, and how good they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..graph.graph import Graph
from ..graph.splits import Split
from ..training import BatchConfig, Fitted, ModelSpec, config_to, embed
from ..training.metrics import all_metrics, majority_metrics, per_class
from ..training.predictions import predicted_pieces, prediction_columns, result_row
from .choose import Choice
from .folds import judging_split
from .portfolio import Portfolio
from .setting import Setting


@dataclass(frozen=True, eq=False)
class Trained:
    """One seed: the network, the split that it was trained with, and what it gives for every node."""

    fitted: Fitted
    graph: Graph
    split: Split
    seconds: float
    batch: BatchConfig | None = None
    portfolio: Portfolio | None = None  # how an ensemble came about
    spec: ModelSpec | None = None  # by which the network can be built again; None: it has no name
    # Of one network that learnt from all labels: some nodes, and what a training without them says of them.
    held_out: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float32]:
        """Of every node, computed once. [nodes, classes]"""
        if self.portfolio is not None and self.portfolio.everywhere is not None:
            return self.portfolio.everywhere  # the same bits: the search has asked every member already
        return np.concatenate([shares for _, shares in self._predicted()])

    def pieces(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """(some nodes, their probabilities), all nodes in order: a training in batches is asked in pieces."""
        if self.batch is None:
            yield np.arange(self.graph.num_nodes), self.probabilities
        else:
            yield from self._predicted()

    def _predicted(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        return predicted_pieces(self.fitted.model, self.graph, self.fitted.config, self.batch is not None)

    def columns(
        self, nodes: npt.NDArray[Any], shares: npt.NDArray[Any], with_probabilities: bool = False
    ) -> dict[str, Any]:
        """The table of predictions: id, part, label, predicted class and its probability."""
        names = self.graph.class_names or [str(k) for k in range(shares.shape[1])]
        return prediction_columns(nodes, shares, self.graph, names, self.split, with_probabilities)

    def row(self, predicted: npt.NDArray[Any] | None = None) -> dict[str, Any]:
        """One row of results from the predicted class of every node. It opens the gate to the test nodes."""
        predicted = self.probabilities.argmax(axis=1) if predicted is None else predicted
        return {
            **result_row(self.fitted, predicted, self.graph, self.split),
            **self.judged_row(),
            "parameters": sum(p.numel() for p in self.fitted.model.parameters()),
            "seconds": round(self.seconds, 3),
            **({} if self.batch is None else {"batch": config_to(self.batch)}),
        }

    @cached_property
    def judged(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Nodes that estimates are of, with their probabilities: `unseen` by the trainings that judge them,
        and `test`, behind the gate; of a training in batches, not these."""
        unseen = self.held_out if self.portfolio is None else self.portfolio.judged
        found = {} if unseen is None else {"unseen": unseen}
        test = self.split.reveal_test().numpy()
        if len(test) and self.batch is None:
            found["test"] = (test, self.probabilities[test])
        return found

    @property
    def unjudged(self) -> bool:
        """Whether all labels trained, and were too few to hold any out."""
        train, val, test = self.split.sizes
        folds = 1 if self.portfolio is None else self.portfolio.folds
        return bool(train) and not val + test and folds == 1 and not self.judged

    @property
    def use_of_labels(self) -> str:
        """In one line, which labels served for what."""
        train, val, test = self.split.sizes
        folds = 1 if self.portfolio is None else self.portfolio.folds
        if not val + test:
            every = f"all {train} labelled nodes train"
            if folds > 1:
                return f"{every}, in {folds} folds; each is judged without itself"
            if self.held_out is not None:
                _, chose, judge = judging_split(self.graph, self.split).sizes
                return (
                    f"{every}; a first training without {chose + judge} of them chose the epochs by {chose} "
                    f"and is judged by {judge}"
                )
            if self.unjudged:
                return f"{every}, too few to judge by"
        used = f"split {self.split.name}: {train} train, {val} validation, {test} test"
        return f"{used}; training nodes judge too, in {folds} folds" if folds > 1 else used

    def judged_row(self) -> dict[str, Any]:
        """Every metric on the judged nodes, beside those of always saying the most common class."""
        row: dict[str, Any] = {}
        y, classes = self.graph.y.numpy(), self.graph.num_classes
        found: dict[str, float] | None = None
        if self.portfolio is not None:
            row, found = {"epochs": len(self.portfolio.trials)}, self.portfolio.estimate
        elif self.held_out is not None:
            found = all_metrics(y[self.held_out[0]], self.held_out[1])
        if found is not None and not self.unjudged:  # else it is of the labels that trained
            row |= {"val_accuracy": found["accuracy"], "estimate": found}
        names = self.graph.class_names or [str(k) for k in range(classes)]
        for kind, (nodes, probabilities) in self.judged.items():
            if kind == "test":
                row["test_metrics"] = all_metrics(y[nodes], probabilities)
            row.setdefault("majority", {})[kind] = majority_metrics(y[nodes], classes)
            row.setdefault("classes", {})[kind] = per_class(y[nodes], probabilities, names)
        return row


@dataclass(frozen=True, eq=False)
class Trainings:
    """What `train_graph` gives: a trained network for each seed, and how the model was chosen."""

    graph: Graph
    setting: Setting
    trained: tuple[Trained, ...]
    choice: Choice | None = None

    @property
    def best(self) -> Trained:
        """The seed with the lowest validation loss; test nodes have no say in it."""
        return min(self.trained, key=lambda one: one.fitted.metrics["val_loss"])

    @property
    def embedding(self) -> npt.NDArray[np.float32]:
        """The last hidden layer. [nodes, hidden]"""
        return embed(self.best.fitted.model, self.graph, self.best.fitted.config).cpu().numpy()
