"""From tables to a graph folder, reading each table once and holding a bounded part of it in memory."""

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.from_tables import Columns, _edge_ends, name_columns
from ..data.ids import require_filled, rows_of
from ..errors import InputError, StorageError
from ..graph.manifest import MANIFEST, Array, Manifest, manifest_to
from ..graph.mapped import Mapped, NpyWriter
from ..text import count
from .edges import PIECE, write_csr
from .nodes import Nodes, _plain_ids, id_pieces, read_nodes, write_features
from .tables import columns_of, pieces, scan

if TYPE_CHECKING:
    pass

Tell = Callable[[str], None]


def ingest(
    edges: str | Path,
    nodes: str | Path,
    out: str | Path,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    label: str | None = None,
    split: str | None = None,
    ignore: str | Sequence[str] = (),
    standardise: bool = True,
    drop_unknown: bool = False,
    name: str | None = None,
    tell: Tell = lambda text: None,
) -> Manifest:
    """Make the graph folder `out`. It appears complete, or not at all.

    Args:
        edges, nodes: CSV, TSV or Parquet. Every column of `nodes` that has no other role is a number.
        id, source, target, label, split, ignore, standardise, drop_unknown: as in `conjoint.data.read_graph`.
        tell: called with a line about each stage.
    """
    out = Path(out)
    if out.exists():
        raise InputError(f"{out}: already there and never overwritten; choose another folder")
    columns = name_columns(id=id, source=source, target=target, label=label, split=split, ignore=ignore)
    with _nursery(out) as folder:
        notes: list[str] = []
        tell(f"reading {nodes}")
        known = read_nodes(nodes, columns, folder / "raw.npy", notes)
        described = dict(_write_nodes(folder, known, standardise, notes))
        tell(f"{len(known.y)} nodes with {len(known.feature_names)} features; reading {edges}")
        pairs = _pairs(edges, known, columns, (str(edges), str(nodes)), notes, drop_unknown)
        written = write_csr(pairs, len(known.y), folder / "col.npy", folder)
        described["col"] = _describe(folder / "col.npy", written.sha256)
        described["rowptr"] = _write(folder, "rowptr", np.int64, [written.rowptr])
        entries = int(written.rowptr[-1])
        if entries == 0:
            raise InputError(f"{edges} has no edges between different nodes; attention needs some")
        if written.loops:
            notes.append(f"dropped {count(written.loops, 'self-loop')} (layers add their own)")
        if written.repeated:
            notes.append(f"{count(written.repeated, 'line')} repeat an edge or give its other direction")
        manifest = Manifest(
            name=name or Path(edges).name.partition(".")[0],
            nodes=len(known.y),
            entries=entries,
            features=len(known.feature_names),
            class_names=tuple(known.class_names),
            feature_names=tuple(known.feature_names),
            negative_features=_any_negative(folder / "x.npy"),
            notes=tuple(notes),
            arrays=described,
        )
        (folder / MANIFEST).write_text(manifest_to(manifest))
    tell(f"{entries // 2} edges; kept in {out}")
    return manifest


def _write_nodes(
    folder: Path, known: Nodes, standardise: bool, notes: list[str]
) -> Iterator[tuple[str, Array]]:
    x = write_features(folder / "raw.npy", folder / "x.npy", known, standardise, notes)
    (folder / "raw.npy").unlink()
    yield "x", _describe(folder / "x.npy", x.sha256)
    yield "y", _write(folder, "y", np.int32, [known.y])
    if known.part is not None:
        yield "part", _write(folder, "part", np.int8, [known.part])
    parts = list(id_pieces(known.ids))
    yield "ids", _write(folder, "ids", parts[0].dtype, parts)


def _write(folder: Path, name: str, dtype: npt.DTypeLike, parts: Sequence[npt.NDArray[Any]]) -> Array:
    with NpyWriter(folder / f"{name}.npy", dtype) as file:
        for part in parts:
            file.append(part)
    return _describe(file.path, file.sha256)


def _describe(path: Path, sha256: str) -> Array:
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    return Array(values.dtype.str, values.shape, path.stat().st_size, sha256)


def _any_negative(path: Path) -> bool:
    mapped = Mapped(path)
    step = max(1, (1 << 23) // mapped.values.shape[1])
    for start in range(0, len(mapped.values), step):
        if bool((mapped.values[start : start + step] < 0).any()):
            return True
        mapped.release()
    return False


def _pairs(
    path: str | Path,
    nodes: Nodes,
    columns: Columns,
    places: tuple[str, str],
    notes: list[str],
    drop_unknown: bool,
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    import polars as pl

    table = scan(path, header=None)
    names = columns_of(table, path)
    ends = _edge_ends(pl.DataFrame({name: ["0"] for name in names}), columns, str(path), notes)
    dropped = before = 0
    for piece in pieces(table, list(dict.fromkeys(ends)), PIECE, path):
        one, other = (_plain_ids(piece[end]) for end in ends)
        for end in (one, other):
            require_filled(end, f"{path} (after row {before})" if before else str(path))
        rows = [rows_of(nodes.ids, end) for end in (one, other)]
        known = (rows[0] >= 0) & (rows[1] >= 0)
        if not known.all():
            if not drop_unknown:
                bad = int(np.argmin(known))
                end = one if rows[0][bad] < 0 else other
                where = f"{path} row {before + bad + 1}, column {end.name!r}"
                raise InputError(
                    f"{where}: id {end[bad]!r} is not in {places[1]}; "
                    "add the node, or pass --drop-unknown to leave such edges out"
                )
            dropped += int((~known).sum())
            rows = [end[known] for end in rows]
        before += len(piece)
        yield rows[0], rows[1]
    if dropped:
        notes.append(f"dropped {count(dropped, 'edge')} whose ends are not in {places[1]}")


@contextlib.contextmanager
def _nursery(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` that takes its name when the block ends well, and else vanishes.

    What a killed process left is recognised by its lock, which the system has dropped, and removed.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in out.parent.glob(f".{glob.escape(out.name)}.*.ingesting"):
            with contextlib.suppress(OSError), _lock(left):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".ingesting", dir=out.parent))
        try:
            with _lock(folder):
                yield folder
                (folder / ".lock").unlink()
                for path in folder.iterdir():
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
                umask = os.umask(0)
                os.umask(umask)
                folder.chmod(0o777 & ~umask)
                os.rename(folder, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise StorageError(f"{out}: cannot write ({said}); nothing was kept: make room or move") from error


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: leftovers stay until the user removes them
        yield
        return
    with open(folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
