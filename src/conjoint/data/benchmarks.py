"""The paper's five graphs by name: how their files, which benchmark_files.py knows, are fetched and read.

The addresses are the ones PyG and OGB use. PyG's own ``download_url`` turns certificate checks off and never
times out, so the bytes come through urllib here; a known SHA-256 is checked before a file gets its name.
"""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO

from .. import benchmark_files
from ..benchmark_files import ARXIV_FILES, BENCHMARKS, VARIABLE, Files, editions, find_files
from ..errors import InputError
from ..graph.graph import Graph
from ..graph.sparse import SparseChoice
from . import planetoid, published
from .read_table import MAX_BYTES
from .write import written_whole

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
COAUTHOR_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
TIMEOUT = 30.0
CHUNK = 2**20


class OfflineError(InputError):
    """The network did not answer; the caller says which file to put where."""


def fetch(url: str, target: Path, sha256: str | None = None) -> None:
    """``url`` into ``target``: whole and checked, or not there at all."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            target.parent.mkdir(parents=True, exist_ok=True)
            _store(answer, url, target, sha256)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise OfflineError(f"{url}: {getattr(error, 'reason', error)}") from None


def _store(answer: IO[bytes], url: str, target: Path, sha256: str | None) -> None:
    digest, size = hashlib.sha256(), 0
    with written_whole(target) as part, open(part, "wb") as file:
        while chunk := answer.read(CHUNK):
            size += len(chunk)
            if size > MAX_BYTES:
                raise InputError(f"{url} sends more than {MAX_BYTES:,} bytes; stopped")
            digest.update(chunk)
            file.write(chunk)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise InputError(f"{url} did not send the known file (SHA-256 differs); nothing was kept")


def unpack(archive: Path, folder: Path, members: Mapping[str, str]) -> None:
    """Take the named ``members`` (inside -> below ``folder``) out of a zip; absent ones are left out."""
    with zipfile.ZipFile(archive) as held:
        for inside in members.keys() & set(held.namelist()):
            if held.getinfo(inside).file_size > MAX_BYTES:
                raise InputError(
                    f"{archive}: {inside} unpacks to more than {MAX_BYTES:,} bytes; not unpacked"
                )
            target = folder / members[inside]
            target.parent.mkdir(parents=True, exist_ok=True)
            with held.open(inside) as source, written_whole(target) as part, open(part, "wb") as file:
                shutil.copyfileobj(source, file)


def _fetch_known(url: str, folder: Path, wanted: Files) -> None:
    for file in wanted.files:
        fetch(f"{url}/{file}", folder / file, planetoid.KNOWN[file])


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
    "planetoid": partial(_fetch_known, PLANETOID_URL),
    "pitfalls": partial(_fetch_known, COAUTHOR_URL),
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
    named = benchmark_files.named_folder(root)
    folder = None if named is None else find_files([named], wanted)
    if folder is None and name == "cora" and edition is None:
        # The cache is not looked at: what load("cora") means must not depend on an earlier download.
        return published.read_embedded_cora()
    folder = folder or find_files([benchmark_files.cache_folder()], wanted)
    if folder is None:
        folder = _download(name, chosen, download, named)
    return READ[chosen](folder, name=name)


def _download(name: str, edition: str, allowed: bool, named: Path | None) -> Path:
    wanted = BENCHMARKS[name][edition]
    reason = "downloads are switched off" if wanted.downloads else "it cannot be downloaded"
    if allowed and wanted.downloads:
        folder = benchmark_files.cache_folder() / wanted.layouts[0]
        try:
            FETCH[edition](folder, wanted)
            return folder
        except OfflineError as error:
            reason = f"the download failed ({error})"
    where = (named or benchmark_files.cache_folder()) / wanted.layouts[0]
    hint = "" if named else f", or name a folder that has it with root= or {VARIABLE}"
    raise InputError(f"{name} is not here and {reason}; put {', '.join(wanted.files)} into {where}{hint}")
