"""Exact inference layer by layer: every node's output once per layer, a bounded part of the graph at a time.

The numbers are those of the whole graph in memory. What a layer gives is kept in a file that is mapped, so
memory holds one piece of the graph, not its hidden units.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.mapped import create, gather
from ..graph.sparse import row_normalise
from ..nn import ops
from ..nn.attention import Structure
from ..nn.cat import CAT
from ..nn.interventions import LowRank
from ..nn.model import NodeModel
from .batches import ALL, Places, draw, neighbourhood

Array = npt.NDArray[Any]
PIECE_ENTRIES = 1 << 19
IN_MEMORY_BYTES = 64 << 20


def attention_network(model: NodeModel) -> CAT:
    """Batches and inference in pieces know how the layers of `CAT` follow each other, no others."""
    if not isinstance(model, CAT) or model.reach is None:
        raise InputError(
            f"--batch: {type(model).__name__} or its intervention needs the whole graph; use --batch full, "
            "or an attention model (cat-i-mf, cat-e-sc, gat, ...)"
        )
    intervention = model.intervention
    if intervention is not None and intervention.whole_first:
        raise InputError(
            f"--batch: {type(intervention).__name__} looks at the whole graph first; use --batch full"
        )
    return model


@torch.no_grad()
def infer(
    model: NodeModel,
    graph: Graph,
    targets: Array | None = None,
    *,
    normalise: bool = False,
    entries: int = PIECE_ENTRIES,
    scratch: Path | None = None,
) -> Iterator[tuple[Array, Tensor]]:
    """Logits of `targets` (sorted ids; all nodes by default), piece by piece: (ids, [ids, classes]).

    Args:
        normalise: divide features by their row sum, as training did.
        entries: at most so many entries of the graph at a time, or one node's where it has more.
        scratch: folder for the hidden units; the system's own for temporary files by default.
    """
    network = attention_network(model)
    was_training = network.training
    network.eval()
    device = next(network.parameters()).device
    wanted = _needed(graph, targets, len(network.convs))
    places = Places(graph.num_nodes)

    def features(ids: Array) -> Tensor:
        x = graph.features(ids)
        return row_normalise(x) if normalise else x

    read: Callable[[Array], Tensor] = features  # what the next layer reads
    try:
        with contextlib.ExitStack() as held:
            for k, conv in enumerate(network.convs):
                last, store = k == len(network.convs) - 1, None
                for ids in _pieces(graph, wanted[k], entries):
                    with places:
                        field = neighbourhood(graph, ids, (ALL,), None, places)
                    adj, n_id = field.layers[0], field.n_id
                    x = read(n_id.numpy()).to(device)
                    if device.type != "cpu":
                        adj, n_id = adj.to(device), n_id.to(device)
                    out = conv(x, adj, score=_structure(network, graph, adj, n_id, x if k == 0 else None))
                    graph.release()
                    if last:
                        yield ids, out.cpu()
                        continue
                    out = ops.activate_and_drop(network.norms[k](out), network.activation, 0.0, None)
                    if store is None:
                        store = held.enter_context(_hidden(graph, out.size(1), wanted[k], scratch))
                    store.write(ids, out)
                if store is not None:
                    read = store.read
    finally:
        network.train(was_training)


@dataclass(frozen=True, eq=False)
class _Hidden:
    """What a layer gave, in memory if it is small, else in a mapped file. `ids` are its nodes, None = all."""

    values: Array
    ids: Array | None
    release: Callable[[], None]

    def read(self, ids: Array) -> Tensor:
        found = torch.from_numpy(gather(self.values, self._place(ids), self.release))
        self.release()
        return found

    def write(self, ids: Array, out: Tensor) -> None:
        self.values[self._place(ids)] = out.cpu().numpy()
        self.release()

    def _place(self, ids: Array) -> Array:
        return ids if self.ids is None else np.searchsorted(self.ids, ids)


@contextlib.contextmanager
def _hidden(graph: Graph, width: int, ids: Array | None, scratch: Path | None) -> Iterator[_Hidden]:
    rows = graph.num_nodes if ids is None else len(ids)
    if 4 * rows * width <= IN_MEMORY_BYTES:
        yield _Hidden(np.empty((rows, width), dtype=np.float32), ids, lambda: None)
        return
    with tempfile.TemporaryDirectory(prefix="conjoint-", dir=scratch) as folder:
        mapped = create(Path(folder) / "hidden.npy", (rows, width), np.float32)
        yield _Hidden(mapped.values, ids, mapped.release)


def _structure(network: CAT, graph: Graph, adj: Any, n_id: Tensor, x: Tensor | None) -> Structure | None:
    intervention = network.intervention
    if intervention is None:
        return None
    if x is None and not isinstance(intervention, LowRank):
        # Some scores compare input features, in every layer.
        x = graph.features(n_id.cpu().numpy()).to(n_id.device)
    return Structure(adj, intervention(adj, x, n_id))


def _needed(graph: Graph, targets: Array | None, layers: int) -> list[Array | None]:
    """The nodes whose output each layer must give, first layer first. None: all."""
    needed: list[Array | None] = [targets]
    for _ in range(layers - 1):
        above = needed[0]
        if above is None:
            return [None] * (layers - len(needed)) + needed
        reached = np.zeros(graph.num_nodes, dtype=bool)
        reached[above] = True
        for ids in _pieces(graph, above, PIECE_ENTRIES):
            reached[draw(graph, ids, ALL, None).col] = True
        graph.release()
        needed.insert(0, None if reached.all() else np.flatnonzero(reached))
    return needed


def _pieces(graph: Graph, nodes: Array | None, entries: int) -> Iterator[Array]:
    """The nodes in pieces of at most so many entries, self-loops counted."""
    ids = np.arange(graph.num_nodes) if nodes is None else nodes
    ends = np.cumsum(graph.degree[ids] + 1)
    start = 0
    while start < len(ids):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + entries, side="right")))
        yield ids[start:stop]
        start = stop
