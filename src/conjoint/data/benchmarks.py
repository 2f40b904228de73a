"""The paper's five graphs by name: ``load("pubmed")``."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conjoint.data import planetoid, published
from conjoint.data.download import OfflineError, fetch, unpack
from conjoint.data.embedded_cora import read_embedded_cora
from conjoint.data.folders import VARIABLE, cache_folder, find_files, named_folder
from conjoint.errors import InputError
from conjoint.graph.graph import Graph
from conjoint.graph.sparse import SparseChoice

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
COAUTHOR_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/ms_academic_cs.npz"
COAUTHOR_SHA256 = "933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3"
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


def _fetch_planetoid(name: str, folder: Path) -> None:
    for file in planetoid.file_names(name):
        fetch(f"{PLANETOID_URL}/{file}", folder / file, planetoid.KNOWN[file])


def _fetch_coauthor(folder: Path) -> None:
    fetch(COAUTHOR_URL, folder / "ms_academic_cs.npz", COAUTHOR_SHA256)


def _fetch_arxiv(folder: Path) -> None:
    archive = folder / "arxiv.zip"
    fetch(ARXIV_URL, archive)
    unpack(archive, folder, {f"arxiv/{file}": file for file in (*ARXIV_FILES, "raw/node-feat.csv.gz")})
    archive.unlink()


def _planetoid(name: str, folder: str) -> Source:
    return Source(
        layouts=(f"planetoid/{folder}/raw", f"Planetoid/{folder}/raw", f"{folder}/raw"),
        files=tuple(planetoid.file_names(name)),
        read=partial(planetoid.read_planetoid, name=name),
        fetch=partial(_fetch_planetoid, name),
    )


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
            ("ms_academic_cs.npz",),
            published.read_coauthor,
            _fetch_coauthor,
        )
    },
    "ogbn-arxiv": {"ogb": Source(("ogbn_arxiv", "."), ARXIV_FILES, published.read_arxiv, _fetch_arxiv)},
}


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
    return _read(name, root, source, download).with_features(features, seed, sparse)


def _read(name: str, root: str | os.PathLike[str] | None, edition: str | None, download: bool) -> Graph:
    editions = BENCHMARKS[name]
    choices = [*editions, "embedded"] if name == "cora" else list(editions)
    if edition is not None and edition not in choices:
        raise InputError(f"{name} has no source {edition!r}; choose one of {', '.join(choices)}")
    if edition == "embedded":
        return read_embedded_cora()
    source = editions[edition or next(iter(editions))]
    named = named_folder(root)
    folder = None if named is None else find_files([named], source.layouts, source.files)
    if folder is None and name == "cora" and edition is None:
        # The cache is not looked at: what load("cora") means must not depend on an earlier download.
        return read_embedded_cora()
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
