"""Tables and graphs out: whole or not at all, and safe to open in a spreadsheet."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import to_scipy
from ..storage import TEMPORARY, usual_mode

# A cell that starts so is run as a formula by spreadsheets, some of which read wide letters as plain ones.
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
# A node table has one column per feature; past this an .npz is the sane place.
MAX_COLUMNS = 20_000


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its name only when the block ends without an error."""
    target = Path(path)
    try:
        # The ending is the one that a resumed run sweeps away, should this process be killed.
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=TEMPORARY)
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); does its folder exist?") from None
    try:
        yield Path(part)
        os.fsync(handle)  # the name must not reach the disk before the content
        # mkstemp makes files that only the owner can read; a result should be as readable as any new file.
        os.chmod(part, usual_mode(0o666))
        os.replace(part, target)
    finally:
        os.close(handle)
        Path(part).unlink(missing_ok=True)


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any] | Any] | Any) -> None:
    """Columns by name, or a pandas or polars table, to CSV, TSV or Parquet by the file's ending.

    In CSV and TSV a text cell that a spreadsheet would run as a formula gets a leading apostrophe; numbers
    and Parquet are left alone.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise InputError(f"{path} must end in .csv, .tsv or .parquet")
    frame = pl.DataFrame({name: columns[name] for name in getattr(columns, "columns", columns)})
    with written_whole(path) as part:
        if kind == ".parquet":
            frame.write_parquet(part)
        else:
            defused(frame).write_csv(part, separator="\t" if kind == ".tsv" else ",")


def defused(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table with text cells and column names that no spreadsheet takes for a formula."""
    cells = pl.col(pl.String).str.replace(f"({FORMULA})", "'${1}")
    names = {name: "'" + name if re.match(FORMULA, name) else name for name in frame.columns}
    return frame.with_columns(cells).rename(names)


def write_graph(
    data: Graph, edges: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None
) -> None:
    """Write ``data`` as an edge table and a node table, or, if ``edges`` ends in .npz, as one file.

    Each undirected edge is written once. Class numbers become class names, -1 an empty cell. Read it back
    with ``standardise=False`` (and ``weight="weight"`` if there are weights) for the same graph.
    """
    source, target = data.edge_index.cpu().numpy()
    once = source < target
    weight = data.edge_weight
    kept = None if weight is None else weight.cpu().numpy()[once]
    if Path(edges).suffix.lower() == ".npz":
        if nodes is not None:
            raise InputError(f"{edges} holds the whole graph; leave nodes= out")
        return _write_npz(Path(edges), data, np.stack([source[once], target[once]]), kept)
    if nodes is None:
        raise InputError("nodes= is missing: a graph in tables needs an edge table and a node table")
    ids = np.asarray(data.node_ids)
    for path in (edges, nodes):
        _refuse_formulas(path, ids, data.class_names)
    columns: dict[str, Any] = {"source": ids[source[once]], "target": ids[target[once]]}
    if kept is not None:
        columns["weight"] = kept
    width = data.num_features
    if width > MAX_COLUMNS:
        raise InputError(f"{width} features are too many columns for {nodes}; write an .npz instead")
    names = np.array([*data.class_names, None], dtype=object)
    described: dict[str, Any] = {"id": ids, "label": names[data.y.cpu().numpy()].tolist()}
    if data.has_features:
        dense = data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x
        described |= {f"x{i}": dense[:, i].cpu().numpy() for i in range(width)}
    write_table(edges, columns)
    write_table(nodes, described)
    return None


def _refuse_formulas(path: str | os.PathLike[str], ids: npt.NDArray[Any], classes: list[str]) -> None:
    """write_table would put an apostrophe before such a cell, and the id would not come back as it was."""
    if Path(path).suffix.lower() == ".parquet":
        return
    words = [*classes, *(ids.tolist() if ids.dtype.kind == "U" else [])]
    risky = next((word for word in words if re.match(FORMULA, word)), None)
    if risky is not None:
        raise InputError(
            f"{path}: a spreadsheet would run {risky!r} as a formula; write .parquet or .npz instead"
        )


def _write_npz(path: Path, data: Graph, ends: npt.NDArray[Any], weight: npt.NDArray[Any] | None) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {
        "edge_index": ends,
        "y": data.y.cpu().numpy(),
        "node_ids": np.asarray(data.node_ids),
        "class_names": np.array(data.class_names, dtype=np.str_),
    }
    if weight is not None:
        arrays["edge_weight"] = weight
    if data.has_features and data.x.layout == torch.sparse_csr:
        x = to_scipy(data.x)
        arrays |= {f"x_{part}": getattr(x, part) for part in ("data", "indices", "indptr")}
        arrays["x_shape"] = np.array(x.shape)
    elif data.has_features:
        arrays["x"] = data.x.cpu().numpy()
    with written_whole(path) as part, part.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
