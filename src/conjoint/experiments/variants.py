"""Changes of the graph before training, by name: the open axis of the grid.

A run's `variant` is a table {name: options}; each entry is applied in turn. What is random is drawn from the
run's seed, so that ten seeds see ten draws of the noise, and every model of one seed sees the same graph.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch_geometric.data import Data

from ..errors import InputError
from .noise import add_edges, drop_edges, move_features

Change = Callable[[Data, Mapping[str, Any], np.random.Generator], Data]


def _shared(change: Callable[[Data, float, np.random.Generator], Data], most: float) -> Change:
    """A change whose one option is a share."""

    def apply(data: Data, options: Mapping[str, Any], rng: np.random.Generator) -> Data:
        share: Any = options.get("share")
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if set(options) != {"share"} or not number or not 0 <= share <= most:
            raise InputError(f"variant options {dict(options)}: give share, a number from 0 to {most:g}")
        return change(data, float(share), rng)

    return apply


VARIANTS: dict[str, Change] = {
    "add-edges": _shared(add_edges, 100.0),
    "drop-edges": _shared(drop_edges, 1.0),
    "move-features": _shared(move_features, 1.0),
}


def changed(data: Data, variant: Mapping[str, Any], seed: int) -> Data:
    """`data` after the named changes, itself left as it was."""
    for place, (name, options) in enumerate(variant.items()):
        if name not in VARIANTS:
            raise InputError(f"variant {name!r} is not known; there are {', '.join(VARIANTS)}")
        data = VARIANTS[name](data, options, np.random.default_rng([seed, place]))
    return data
