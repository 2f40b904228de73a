"""What tables would be taken for, before anything is trained on them."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Faults
from ..graph.graph import Graph
from .columns import Place
from .features import features_of
from .from_tables import graph_from_tables
from .ingestion import small_columns
from .own import WHOLE_GRAPH, File, Reading, kind_of, read_own
from .read_table import open_table

LARGE = 32 * 2**20  # bytes of a file that is not read whole, only to be looked at
ROWS, EDGES = 20_000, 1_000_000  # of such files


@dataclass(frozen=True)
class Preview:
    """A graph in short: its size, what its columns were taken for, labels per class, what was assumed."""

    name: str
    nodes: int
    edges: int
    features: int
    columns: Mapping[str, str]
    classes: Mapping[str, int]
    unlabelled: int
    notes: tuple[str, ...]


def preview_of(graph: Graph) -> Preview:
    labels = graph.y.numpy()
    names = graph.class_names or [str(k) for k in range(graph.num_classes)]
    times = np.bincount(labels[labels >= 0], minlength=len(names)).tolist()
    return Preview(
        name=graph.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges // 2,
        features=graph.num_features,
        columns=dict(graph.columns),
        classes=dict(zip(names, times, strict=True)),
        unlabelled=int((labels < 0).sum()),
        notes=tuple(graph.notes),
    )


def check(edges: File, nodes: File | None = None, **options: Any) -> Preview:
    """Read tables as `read_graph` does with these options, but for features made from the edges.

    All faults are told in one error. Of large files the ids and labels are read, and else the first rows.
    """
    options["preview"] = True
    sizes = [os.path.getsize(file) for file in (edges, nodes) if file is not None and os.path.isfile(file)]
    large = max(sizes, default=0) > LARGE and kind_of(edges) not in WHOLE_GRAPH
    found = _look_at(edges, nodes, **options) if large else preview_of(read_own(edges, nodes, **options))
    if found.features:
        return found
    none = f"no features: {options.get('features') or 'spectral ones'} will be made from the edges"
    return replace(found, notes=(*found.notes, none))


def _look_at(edges: File, nodes: File | None, **given: Any) -> Preview:
    reading, notes, faults = Reading.of(given), list[str](), Faults()
    columns, form = reading.columns, reading.form
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        edge_table = open_table(edges, scratch, **form, header=reading.header)
        ends = columns.edge_ends(edge_table.names, Place(str(edges)), [])
        read = [*ends, *([columns.weight] if columns.weight else [])]
        some = next(edge_table.read(read, EDGES))[:EDGES]
        rows = edge_table.height
        notes.append(f"{edges}: of {rows:,} edges, the first {some.height:,} were checked")
        about, parts = None, dict[str, Any]()
        made: list[str] = []
        if nodes is not None:
            node_table = open_table(nodes, scratch, **form, header=None)
            found, id, others = columns.in_node_table(node_table.names, Place(str(nodes)), [])
            about = small_columns(node_table, id, found)
            with faults.noted():
                if others and reading.features is None:
                    head = next(node_table.read(others, ROWS))[:ROWS]
                    notes.append(f"{nodes}: kinds of columns are judged by the first {head.height:,} rows")
                    options = {"standardise": reading.standardise}
                    _, made, taken = features_of(head, Place(str(nodes)), notes, columns, **options)
                    parts = {"columns": taken}
    graph = None
    with faults.noted():
        graph = graph_from_tables(
            some,
            about,
            columns,
            places=(Place(str(edges)), Place(str(nodes))),
            name=reading.title(edges),
            use_columns=False,
            drop_unknown=reading.drop_unknown,
            notes=notes,
        )
    faults.raise_any()
    assert graph is not None  # else there was a fault
    return replace(preview_of(graph.changed(**parts)), edges=rows, features=len(made))
