"""The paper's five graphs by name: how their files, which benchmark_files.py knows, are fetched and read."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..benchmark_files import (
    ARXIV_FILES,
    BENCHMARKS,
    VARIABLE,
    Files,
    cache_folder,
    editions,
    find_files,
    named_folder,
)
from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice
from . import planetoid, published
from .download import OfflineError, fetch, unpack

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
COAUTHOR_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
COAUTHOR = {"ms_academic_cs.npz": "933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3"}
ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


def _fetch_known(url: str, checksums: dict[str, str], folder: Path, wanted: Files) -> None:
    for file in wanted.files:
        fetch(f"{url}/{file}", folder / file, checksums[file])


def _fetch_arxiv(folder: Path, wanted: Files) -> None:
    archive = folder / "arxiv.zip"
    fetch(ARXIV_URL, archive)
    unpack(archive, folder, {f"arxiv/{file}": file for file in (*ARXIV_FILES, "raw/node-feat.csv.gz")})
    archive.unlink()


READ: dict[str, Callable[..., Graph]] = {  # edition -> of a folder and the name
    "planetoid": planetoid.read_planetoid,
    "release": published.read_release,
    "pitfalls": lambda folder, name: published.read_coauthor(folder),
    "ogb": lambda folder, name: published.read_arxiv(folder),
}
# edition -> into a folder; those that are missing here the user must bring
FETCH: dict[str, Callable[[Path, Files], None]] = {
    "planetoid": partial(_fetch_known, PLANETOID_URL, planetoid.KNOWN),
    "pitfalls": partial(_fetch_known, COAUTHOR_URL, COAUTHOR),
    "ogb": _fetch_arxiv,
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
    if edition is not None and edition not in editions(name):
        raise InputError(f"{name} has no source {edition!r}; choose one of {', '.join(editions(name))}")
    if edition == "embedded":
        return published.read_embedded_cora()
    chosen = edition or editions(name)[0]
    wanted = BENCHMARKS[name][chosen]
    named = named_folder(root)
    folder = None if named is None else find_files([named], wanted)
    if folder is None and name == "cora" and edition is None:
        # The cache is not looked at: what load("cora") means must not depend on an earlier download.
        return published.read_embedded_cora()
    folder = folder or find_files([cache_folder()], wanted)
    if folder is None:
        folder = _download(name, chosen, download, named)
    return READ[chosen](folder, name=name)


def _download(name: str, edition: str, allowed: bool, named: Path | None) -> Path:
    wanted = BENCHMARKS[name][edition]
    reason = "downloads are switched off" if wanted.downloads else "it cannot be downloaded"
    if allowed and wanted.downloads:
        folder = cache_folder() / wanted.layouts[0]
        try:
            FETCH[edition](folder, wanted)
            return folder
        except OfflineError as error:
            reason = f"the download failed ({error})"
    where = (named or cache_folder()) / wanted.layouts[0]
    hint = "" if named else f", or name a folder that has it with root= or {VARIABLE}"
    raise InputError(f"{name} is not here and {reason}; put {', '.join(wanted.files)} into {where}{hint}")
