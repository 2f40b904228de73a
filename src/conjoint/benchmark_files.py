"""The paper's five graphs by name: their sizes, their files, and where those are found.

Nothing heavy is imported here: `conjoint datasets` is answered at once. `data.benchmarks` fetches and reads.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InputError

VARIABLE = "CONJOINT_DATA"
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
ARXIV_FILES = (
    "raw/edge.csv.gz",
    "raw/node-label.csv.gz",
    "raw/node_year.csv.gz",
    *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
)


@dataclass(frozen=True)
class Files:
    """Raw files, and the folders (below a data folder) that they may stand in.

    The first of ``layouts`` is the one to recommend, and where a download goes.
    """

    layouts: tuple[str, ...]
    files: tuple[str, ...]
    downloads: bool = True  # else the user brings them


def _planetoid(name: str, folder: str) -> Files:
    layouts = (f"planetoid/{folder}/raw", f"Planetoid/{folder}/raw", f"{folder}/raw")
    return Files(layouts, tuple(f"ind.{name}.{part}" for part in PLANETOID_PARTS))


RELEASE_FILES = {"cora": "cora.npz", "citeseer": "cite.npz", "pubmed": "pubmed.npz"}


def _release(name: str) -> Files:
    return Files(("cats_release",), (RELEASE_FILES[name],), downloads=False)


# name -> edition -> its files; the first edition is the default. The embedded Cora needs no files.
BENCHMARKS: dict[str, dict[str, Files]] = {
    "cora": {"planetoid": _planetoid("cora", "Cora"), "release": _release("cora")},
    "citeseer": {"planetoid": _planetoid("citeseer", "CiteSeer"), "release": _release("citeseer")},
    "pubmed": {"planetoid": _planetoid("pubmed", "PubMed"), "release": _release("pubmed")},
    "coauthor-cs": {
        "pitfalls": Files(("coauthor/CS/raw", "Coauthor/CS/raw", "CS/raw"), ("ms_academic_cs.npz",))
    },
    "ogbn-arxiv": {"ogb": Files(("ogbn_arxiv", "."), ARXIV_FILES)},
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


def editions(name: str) -> list[str]:
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


def find_files(bases: Sequence[Path], wanted: Files) -> Path | None:
    """The first ``base/layout`` that holds all files; a folder with only some of them is an error."""
    for base in bases:
        for layout in wanted.layouts:
            folder = base / layout
            missing = [name for name in wanted.files if not (folder / name).is_file()]
            if not missing:
                return folder
            if len(missing) < len(wanted.files):
                raise InputError(f"{folder} lacks {', '.join(missing)}; put the missing raw files there")
    return None


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
        for edition in editions(name)
    ]


def _where(name: str, edition: str, root: str | os.PathLike[str] | None) -> str:
    if edition == "embedded":
        return "inside the package"
    wanted = BENCHMARKS[name][edition]
    named = named_folder(root)
    bases = [base for base in (named, cache_folder()) if base is not None]
    try:
        found = find_files(bases, wanted)
    except InputError as error:
        return str(error)
    if found is None:
        target = f"{named or f'<folder in {VARIABLE}>'}/{wanted.layouts[0]}"
        what = "downloaded on first use, or put its files" if wanted.downloads else "put it"
        return f"{what} into {target}"
    if name == "ogbn-arxiv" and not (found / "raw/node-feat.csv.gz").is_file():
        return f"{found} (without node-feat.csv.gz: ask for structural features)"
    return str(found)
