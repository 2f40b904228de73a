"""Attention as a table: which node receives from which, in which layer and head, and why."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..nn.attention import ConjointAttention


class AttentionTable(NamedTuple):
    """One row per (edge, layer, head): node `dst` receives from node `src`.

    `conjoint` is the weight that the layer sums with; `feature` and `structural` are what it was made from,
    NaN where the network has no such part. In conjoint attention the weights of one target in one layer and
    head sum to 1. Nodes carry the user's names. `pandas.DataFrame(table._asdict())` makes a data frame of it.
    """

    src: npt.NDArray[Any]
    dst: npt.NDArray[Any]
    layer: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    feature: npt.NDArray[np.float32]
    structural: npt.NDArray[np.float32]
    conjoint: npt.NDArray[np.float32]


def attention_table(layers: list[ConjointAttention], names: npt.NDArray[Any]) -> AttentionTable:
    parts: list[list[npt.NDArray[Any]]] = []
    for number, weights in enumerate(layers):
        edges, heads = weights.conjoint.shape
        source, target = weights.edge_index.cpu().numpy()
        nothing = np.full(edges * heads, np.nan, dtype=np.float32)
        structural = weights.structural
        if structural is not None and structural.dim() == 1:  # one intervention: the same for all heads
            structural = structural.unsqueeze(1).expand(edges, heads)
        parts.append(
            [
                names[np.repeat(source, heads)],
                names[np.repeat(target, heads)],
                np.full(edges * heads, number),
                np.tile(np.arange(heads), edges),
                nothing if weights.feature is None else weights.feature.cpu().numpy().ravel(),
                nothing if structural is None else structural.cpu().numpy().ravel(),
                weights.conjoint.cpu().numpy().ravel(),
            ]
        )
    return AttentionTable(*(np.concatenate(column) for column in zip(*parts, strict=True)))
