"""Predictions of a graph that need not fit into memory, straight into a table."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..data.splits import Split
from ..data.tables import defused, written_whole
from ..errors import InputError
from ..nn.model import NodeModel
from ..store import StoredGraph
from ..training.config import TrainConfig
from .inference import infer
from .work import normalises

Columns = dict[str, Any]


def predicted_pieces(
    model: NodeModel, graph: StoredGraph, config: TrainConfig, scratch: Path | None = None
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """(ids of some nodes, their class probabilities), all nodes in order."""
    for ids, logits in infer(model, graph, normalise=normalises(graph, config), scratch=scratch):
        yield ids, logits.softmax(dim=1).numpy()


def tabulated(
    pieces: Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    graph: StoredGraph,
    class_names: Sequence[str],
    split: Split,
    with_probabilities: bool,
) -> Iterator[tuple[Columns, Tensor]]:
    """Each piece as columns (id, part, label, predicted, probability), beside its predicted classes."""
    names = np.array([*class_names, ""])  # label -1 takes the last: unlabelled
    parts = np.zeros(graph.num_nodes, dtype=np.int8)
    words = np.array(["", "train", "val", "test"])
    for code, nodes in ((3, split.reveal_test()), (2, split.val), (1, split.train)):
        parts[nodes.numpy()] = code
    for ids, shares in pieces:
        guess = shares.argmax(axis=1)
        columns: Columns = {
            "id": np.asarray(graph.node_ids[ids]),
            "part": words[parts[ids]],
            "label": names[graph.y.numpy()[ids]],
            "predicted": names[guess],
            "probability": shares.max(axis=1),
        }
        if with_probabilities:
            columns |= {f"p({name})": shares[:, k] for k, name in enumerate(class_names)}
        yield columns, torch.from_numpy(guess)


@contextlib.contextmanager
def table_in_pieces(path: str | Path) -> Iterator[Any]:
    """A function that appends columns to a CSV, TSV or Parquet file, which appears whole or not at all."""
    import polars as pl

    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise InputError(f"{path} must end in .csv, .tsv or .parquet")
    with written_whole(target) as part, contextlib.ExitStack() as held:
        if kind == ".parquet":
            import tempfile

            folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=target.parent)))
            count = 0

            def append(columns: Columns) -> None:
                nonlocal count
                pl.DataFrame(columns).write_parquet(folder / f"{count:09d}.parquet")
                count += 1

            yield append
            pl.scan_parquet(sorted(folder.iterdir())).sink_parquet(part, maintain_order=True)
            return
        file = held.enter_context(open(part, "wb"))

        def append_text(columns: Columns) -> None:
            frame = defused(pl.DataFrame(columns))
            separator = "\t" if kind == ".tsv" else ","
            frame.write_csv(file, separator=separator, include_header=file.tell() == 0)

        yield append_text
        file.flush()
