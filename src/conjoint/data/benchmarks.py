"""The paper's five graphs by name: what they are, where their files are, and how to get them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice
from . import planetoid, published
from .download import OfflineError, fetch, unpack

VARIABLE = "CONJOINT_DATA"
PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
COAUTHOR_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
COAUTHOR = {"ms_academic_cs.npz": "933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3"}
ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
ARXIV_FILES = (
    "raw/edge.csv.gz",
    "raw/node-label.csv.gz",
    "raw/node_year.csv.gz",
    *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
)


@dataclass(frozen=True)
class Source:
    """Raw files, the folders (below a data folder) they may stand in, and how to read and fetch them.

    The first of ``layouts`` is the one to recommend, and where a download goes.
    """

    layouts: tuple[str, ...]
    files: tuple[str, ...]
    read: Callable[[Path], Graph]
    fetch: Callable[[Path], None] | None = None


def _fetch_known(url: str, checksums: dict[str, str], folder: Path) -> None:
    for file, sha256 in checksums.items():
        fetch(f"{url}/{file}", folder / file, sha256)


def _fetch_arxiv(folder: Path) -> None:
    archive = folder / "arxiv.zip"
    fetch(ARXIV_URL, archive)
    unpack(archive, folder, {f"arxiv/{file}": file for file in (*ARXIV_FILES, "raw/node-feat.csv.gz")})
    archive.unlink()


def _planetoid(name: str, folder: str) -> Source:
    layouts = (f"planetoid/{folder}/raw", f"Planetoid/{folder}/raw", f"{folder}/raw")
    checksums = {file: planetoid.KNOWN[file] for file in planetoid.file_names(name)}
    read = partial(planetoid.read_planetoid, name=name)
    return Source(layouts, tuple(checksums), read, partial(_fetch_known, PLANETOID_URL, checksums))


def _release(name: str) -> Source:
    file = published.RELEASE_FILES[name]
    return Source(("cats_release",), (file,), partial(published.read_release, name=name))


# name -> source -> how to get it; the first source is the default. The embedded Cora needs no files.
BENCHMARKS: dict[str, dict[str, Source]] = {
    "cora": {"planetoid": _planetoid("cora", "Cora"), "release": _release("cora")},
    "citeseer": {"planetoid": _planetoid("citeseer", "CiteSeer"), "release": _release("citeseer")},
    "pubmed": {"planetoid": _planetoid("pubmed", "PubMed"), "release": _release("pubmed")},
    "coauthor-cs": {
        "pitfalls": Source(
            ("coauthor/CS/raw", "Coauthor/CS/raw", "CS/raw"),
            tuple(COAUTHOR),
            published.read_coauthor,
            partial(_fetch_known, COAUTHOR_URL, COAUTHOR),
        )
    },
    "ogbn-arxiv": {"ogb": Source(("ogbn_arxiv", "."), ARXIV_FILES, published.read_arxiv, _fetch_arxiv)},
}


# nodes, undirected edges without duplicates and self-loops, features, classes: what load() gives.
SIZES = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
    "coauthor-cs": (18333, 81894, 6805, 15),
    "ogbn-arxiv": (169343, 1157799, 128, 40),
}
SPLITS = {"embedded": ("released",), "planetoid": ("public",), "release": ("released",), "ogb": ("time",)}


def _editions(name: str) -> list[str]:
    return [*BENCHMARKS[name], *(["embedded"] if name == "cora" else [])]


def cache_folder() -> Path:
    """The user's cache of raw files; made only when something is downloaded."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "conjoint"


def named_folder(root: str | os.PathLike[str] | None) -> Path | None:
    """``root``, or else the folder in the environment variable CONJOINT_DATA, or None. It must exist."""
    named = root if root is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        argument = "root" if root is not None else VARIABLE
        raise InputError(f"{argument}={str(folder)!r} is not a folder; name one that holds the raw files")
    return folder


def find_files(bases: Sequence[Path], layouts: Sequence[str], files: Sequence[str]) -> Path | None:
    """The first ``base/layout`` that holds all ``files``; a folder with only some of them is an error."""
    for base in bases:
        for layout in layouts:
            folder = base / layout
            missing = [name for name in files if not (folder / name).is_file()]
            if not missing:
                return folder
            if len(missing) < len(files):
                raise InputError(f"{folder} lacks {', '.join(missing)}; put the missing raw files there")
    return None


def load_graph(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    features: str | None = None,
    sparse: SparseChoice = "auto",
    source: str | None = None,
    download: bool = True,
    seed: int = 0,
) -> Graph:
    """One of the paper's graphs (undirected, no self-loops, features as published).

    Args:
        name: ``cora``, ``citeseer``, ``pubmed``, ``coauthor-cs`` or ``ogbn-arxiv``. ``cora-release`` is short
            for ``source="release"``; so with the next two.
        root: a folder with raw files in PyG's or OGB's layout, only read. Default: the environment variable
            CONJOINT_DATA, then the user's cache, then a download into that cache.
        features: None for the published ones, or structural ones by name: ``spectral:128``, ``degree:32``.
        sparse: True for CSR features, False for dense, ``"auto"`` for whichever suits their density.
        source: which edition: ``embedded`` (Cora only), ``planetoid``, ``release``. Default: the published
            files; for Cora the embedded graph when no folder is named or the folder has no Cora.
        download: whether the network may be used when the files are not here.
        seed: for structural features.
    """
    if name.endswith("-release"):
        name, source = name.removesuffix("-release"), "release"
    if name not in BENCHMARKS:
        raise InputError(f"dataset {name!r} is not known; choose one of {', '.join(BENCHMARKS)}")
    graph = _read(name, root, source, download)
    if features is None and not graph.has_features:
        why = f" ({'; '.join(graph.notes)})" if graph.notes else ""
        raise InputError(
            f"{graph.name} has no node features{why}; ask for structural ones, for example "
            "features='spectral:128'"
        )
    graph = graph.with_features(features, seed, sparse)
    return graph.changed(benchmark=True)


def _read(name: str, root: str | os.PathLike[str] | None, edition: str | None, download: bool) -> Graph:
    editions = BENCHMARKS[name]
    if edition is not None and edition not in _editions(name):
        raise InputError(f"{name} has no source {edition!r}; choose one of {', '.join(_editions(name))}")
    if edition == "embedded":
        return published.read_embedded_cora()
    source = editions[edition or next(iter(editions))]
    named = named_folder(root)
    folder = None if named is None else find_files([named], source.layouts, source.files)
    if folder is None and name == "cora" and edition is None:
        # The cache is not looked at: what load("cora") means must not depend on an earlier download.
        return published.read_embedded_cora()
    folder = folder or find_files([cache_folder()], source.layouts, source.files)
    if folder is None:
        folder = _download(name, source, download, named)
    return source.read(folder)


def _download(name: str, source: Source, allowed: bool, named: Path | None) -> Path:
    reason = "downloads are switched off" if source.fetch else "it cannot be downloaded"
    if allowed and source.fetch:
        folder = cache_folder() / source.layouts[0]
        try:
            source.fetch(folder)
            return folder
        except OfflineError as error:
            reason = f"the download failed ({error})"
    where = (named or cache_folder()) / source.layouts[0]
    hint = "" if named else f", or name a folder that has it with root= or {VARIABLE}"
    raise InputError(f"{name} is not here and {reason}; put {', '.join(source.files)} into {where}{hint}")


def datasets_table(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """One row per graph and edition, in the order in which ``load`` would choose."""
    return [
        {
            "name": name,
            "source": edition,
            **dict(zip(("nodes", "edges", "features", "classes"), SIZES[name], strict=True)),
            "splits": [*SPLITS.get(edition, ()), "per-class", "fraction"],
            "where": _where(name, edition, root),
        }
        for name in BENCHMARKS
        for edition in _editions(name)
    ]


def _where(name: str, edition: str, root: str | os.PathLike[str] | None) -> str:
    if edition == "embedded":
        return "inside the package"
    source = BENCHMARKS[name][edition]
    named = named_folder(root)
    bases = [base for base in (named, cache_folder()) if base is not None]
    try:
        found = find_files(bases, source.layouts, source.files)
    except InputError as error:
        return str(error)
    if found is None:
        target = f"{named or f'<folder in {VARIABLE}>'}/{source.layouts[0]}"
        return (
            f"downloaded on first use, or put its files into {target}"
            if source.fetch
            else f"put it into {target}"
        )
    if name == "ogbn-arxiv" and not (found / "raw/node-feat.csv.gz").is_file():
        return f"{found} (without node-feat.csv.gz: ask for structural features)"
    return str(found)
