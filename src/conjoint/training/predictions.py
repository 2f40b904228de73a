"""What a trained model says of the nodes: probabilities, embeddings, result rows, and the table of them."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from ..data.write import defused, written_whole
from ..errors import InputError
from ..graph.adjacency import adjacency
from ..graph.graph import Graph, as_graph
from ..graph.splits import Split
from ..nn.model import NodeModel
from ..nn.new_nodes import with_new_nodes
from ..threads import steady_products
from .config import TrainConfig
from .inference import infer
from .loop import Fitted
from .steps import whole_graph

Array = npt.NDArray[Any]
Columns = dict[str, Any]


def predict_proba(model: NodeModel, graph: Graph, config: TrainConfig) -> Tensor:
    """Class probabilities of every node, features treated as in training. -> [nodes, classes]"""
    whole = whole_graph(model, graph, config)
    with steady_products(len(whole.labels)):
        return model.probabilities(whole.x, whole.graph)


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
    known, joint = (adjacency(graph.edge_index, graph.num_nodes) for graph in (before, after))
    return predict_proba(with_new_nodes(model, known, joint), after, as_trained(config, before))


def as_trained(config: TrainConfig, graph: Graph) -> TrainConfig:
    """What "auto" meant in training: a new node's features must not change how the old ones are read."""
    return replace(config, row_normalise="always" if graph.normalises(config.row_normalise) else "never")


@torch.no_grad()
def embed(model: NodeModel, graph: Graph, config: TrainConfig) -> Tensor:
    """The last hidden representation of every node. -> [nodes, hidden]"""
    whole = whole_graph(model, graph, config)
    was_training = model.training
    model.eval()
    try:
        with steady_products(len(whole.labels)):
            return model.embed(whole.x, whole.graph)
    finally:
        model.train(was_training)


def evaluate(fitted: Fitted, graph: Graph, split: Split) -> dict[str, Any]:
    """One result row. This is the call that opens the gate to the test nodes.

    `all_accuracy` is taken over every labelled node, training nodes included: the paper's "clustering".
    """
    graph = as_graph(graph)
    predicted = predict_proba(fitted.model, graph, fitted.config).argmax(dim=1).cpu().numpy()
    return result_row(fitted, predicted, graph, split)


def result_row(fitted: Fitted, predicted: Array, graph: Graph, split: Split) -> dict[str, Any]:
    """The row of `evaluate`, from the predicted class of every node; it opens the same gate."""
    # Half a second to import, and only a finished training needs them.
    from sklearn.metrics import accuracy_score, f1_score

    truth, guess = graph.y.cpu().numpy(), predicted
    parts = {"train": split.train, "val": split.val, "test": split.reveal_test()}
    nodes = {part: index.cpu().numpy() for part, index in parts.items()} | {"all": np.flatnonzero(truth >= 0)}
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
    judged = {part: i for part, i in nodes.items() if len(i)}  # a split of all labels leaves none to judge
    row |= {f"{part}_accuracy": float(accuracy_score(truth[i], guess[i])) for part, i in judged.items()}
    if "test" in judged:
        row["test_macro_f1"] = float(f1_score(truth[nodes["test"]], guess[nodes["test"]], average="macro"))
    layers = fitted.model.intervention_weights()
    if layers and len(layers[0].keys() - {"features"}) > 1:  # several were weighed against each other
        row["intervention_weights"] = [
            {name: round(float(heads.mean()), 4) for name, heads in layer.items()} for layer in layers
        ]
    return row


def predicted_pieces(
    model: NodeModel, graph: Graph, config: TrainConfig, in_pieces: bool, scratch: Path | None = None
) -> Iterator[tuple[Array, Array]]:
    """(some nodes, their class probabilities), all nodes in order: at once, or in pieces of a large graph."""
    if not in_pieces:
        yield np.arange(graph.num_nodes), predict_proba(model, graph, config).cpu().numpy()
        return
    normalise = graph.normalises(config.row_normalise)
    for ids, logits in infer(model, graph, normalise=normalise, scratch=scratch):
        yield ids, logits.softmax(dim=1).numpy()


def prediction_columns(
    nodes: Array,
    shares: Array,
    graph: Graph,
    class_names: Sequence[str],
    split: Split,
    with_probabilities: bool = False,
) -> Columns:
    """The table of predictions: id, part (train, val, test or nothing), label, predicted and probability."""
    names = np.array([*class_names, ""])  # label -1 takes the last: unlabelled
    # Kept with its split, whose id means nothing once it is gone.
    _, parts = graph.once(("parts", id(split)), lambda: (split, _parts_of(split, graph.num_nodes)))
    columns: Columns = {
        "id": np.asarray(graph.node_ids[nodes]),
        "part": parts[nodes],
        "label": names[graph.y.cpu().numpy()[nodes]],
        "predicted": names[shares.argmax(axis=1)],
        "probability": shares.max(axis=1),
    }
    if with_probabilities:
        columns |= {f"p({name})": shares[:, k] for k, name in enumerate(class_names)}
    return columns


def _parts_of(split: Split, nodes: int) -> Array:
    parts = np.full(nodes, "", dtype="<U5")
    for name, index in (("test", split.reveal_test()), ("val", split.val), ("train", split.train)):
        parts[index.cpu().numpy()] = name
    return parts


@contextlib.contextmanager
def table_in_pieces(path: str | Path) -> Iterator[Callable[[Columns], None]]:
    """A function that appends columns to a CSV, TSV or Parquet file, which appears whole or not at all."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise InputError(f"{path} must end in .csv, .tsv or .parquet")
    with written_whole(target) as part, contextlib.ExitStack() as held:
        if kind == ".parquet":
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=target.parent)))

            def append(columns: Columns) -> None:
                number = sum(1 for _ in folder.iterdir())
                pl.DataFrame(columns).write_parquet(folder / f"{number:09d}.parquet")

            yield append
            pl.scan_parquet(sorted(folder.iterdir())).sink_parquet(part, maintain_order=True)
            return
        file = held.enter_context(open(part, "wb"))

        def append_text(columns: Columns) -> None:
            frame, separator = defused(pl.DataFrame(columns)), "\t" if kind == ".tsv" else ","
            frame.write_csv(file, separator=separator, include_header=file.tell() == 0)

        yield append_text
