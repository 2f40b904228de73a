"""A made power-law graph as Parquet tables, of any size, in bounded memory.

python -m benchmarks.scale_graph FOLDER --nodes 5e6 --edges 5e7

Node k has an expected degree that falls as k^-0.6 (a tail of exponent 2.67); node numbers are then scattered,
so that they say nothing. A node's class is hinted at by its features and shared by 60% of its neighbours.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES, TAIL, SAME_CLASS = 16, 0.6, 0.6
TRAIN, VAL = 0.1, 0.02  # shares of the nodes; the rest is for testing
PIECE = 1 << 20


def write_tables(folder: Path, nodes: int, edges: int, features: int, seed: int = 0) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "edges.parquet", folder / "nodes.parquet"
    _write(paths[0], _edges(nodes, edges, np.random.default_rng([seed, 0])))
    _write(paths[1], _nodes(nodes, features, np.random.default_rng([seed, 1])))
    return paths


def _edges(nodes: int, edges: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for start in range(0, edges, PIECE):
        count = min(PIECE, edges - start)
        one, other = (_popular(nodes, count, rng) for _ in range(2))
        alike = rng.random(count) < SAME_CLASS
        other = np.where(alike, other - other % CLASSES + one % CLASSES, other)
        yield {"source": _scatter(one, nodes), "target": _scatter(other % nodes, nodes)}


def _nodes(nodes: int, features: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    centres = rng.normal(size=(CLASSES, features)).astype(np.float32)
    step = max(1, (1 << 22) // features)
    for start in range(0, nodes, step):
        place = np.arange(start, min(start + step, nodes))
        label = place % CLASSES
        x = rng.standard_normal((len(place), features), dtype=np.float32) + 0.15 * centres[label]
        chance = rng.random(len(place))
        part = np.select([chance < TRAIN, chance < TRAIN + VAL], ["train", "val"], "test")
        columns = {f"f{k}": x[:, k] for k in range(features)}
        yield {"id": _scatter(place, nodes), "label": label.astype(np.int16), "part": part, **columns}


def _popular(nodes: int, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return (nodes * rng.random(count) ** (1.0 / (1.0 - TAIL))).astype(np.int64)


def _scatter(place: npt.NDArray[np.int64], nodes: int) -> npt.NDArray[np.int64]:
    """One-to-one as long as the factor, a prime, does not divide the number of nodes."""
    return place * 1_000_003 % nodes


def _write(path: Path, pieces: Iterator[dict[str, Any]]) -> None:
    first = pa.table(next(pieces))
    with pq.ParquetWriter(path, first.schema, compression="lz4") as file:
        file.write_table(first)
        for piece in pieces:
            file.write_table(pa.table(piece))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=float, required=True)
    parser.add_argument("--edges", type=float, required=True)
    parser.add_argument("--features", type=int, default=128)
    chosen = parser.parse_args()
    write_tables(chosen.folder, int(chosen.nodes), int(chosen.edges), chosen.features)
