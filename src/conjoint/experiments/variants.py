"""Changes of the graph before training, by name: the open axis of the grid.

A run's `variant` is a table {name: options}; each entry is applied in turn. An experiment about noisy graphs
adds its change here and its name in the grid; keys, rows and tables then tell its runs from the others.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch_geometric.data import Data

from ..errors import InputError

Change = Callable[[Data, Mapping[str, Any]], Data]

VARIANTS: dict[str, Change] = {}


def changed(data: Data, variant: Mapping[str, Any]) -> Data:
    """`data` after the named changes, itself left as it was."""
    for name, options in variant.items():
        if name not in VARIANTS:
            raise InputError(f"variant {name!r} is not known; there are {', '.join(VARIANTS) or 'none yet'}")
        data = VARIANTS[name](data, options)
    return data
