"""What `conjoint datasets` shows: names, sizes, splits, and where each graph is or how to get it."""

import os
from typing import Any

from conjoint.data.benchmarks import BENCHMARKS
from conjoint.data.folders import VARIABLE, cache_folder, find_files, named_folder
from conjoint.errors import InputError

# nodes, undirected edges without duplicates and self-loops, features, classes: what load() gives.
SIZES = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
    "coauthor-cs": (18333, 81894, 6805, 15),
    "ogbn-arxiv": (169343, 1157799, 128, 40),
}
SPLITS = {"embedded": ("released",), "planetoid": ("public",), "release": ("released",), "ogb": ("time",)}


def datasets_table(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """One row per graph and edition, in the order in which ``load`` would choose."""
    rows = []
    for name, editions in BENCHMARKS.items():
        choices = [*editions, "embedded"] if name == "cora" else list(editions)
        for edition in choices:
            nodes, edges, features, classes = SIZES[name]
            rows.append(
                {
                    "name": name,
                    "source": edition,
                    "nodes": nodes,
                    "edges": edges,
                    "features": features,
                    "classes": classes,
                    "splits": [*SPLITS.get(edition, ()), "per-class", "fraction"],
                    "where": _where(name, edition, root),
                }
            )
    return rows


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
