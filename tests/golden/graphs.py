"""Graphs whose fingerprints are kept: own files of every kind, graphs in Python, the benchmarks, and splits.

Every file is written here from the two tables in `runs/`. Benchmarks, fingerprints and splits are asked
for in `benchmark`, `fingerprint_of` and `split_digest` alone.
"""

import contextlib
import csv
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import conjoint
from conjoint import data as conjoint_data
from conjoint.data import from_any, read_graph, write_graph
from conjoint.errors import InputError
from golden.commands import RUNS

Row = dict[str, str]
THEN: dict[str, Any] = {"reading": 1}  # the rules for columns when the fingerprints were kept
LABEL: dict[str, Any] = {"label": "team", **THEN}
PLAIN: dict[str, Any] = {**LABEL, "text": "bio", "ignore": ["born", "use", "year"]}


def fingerprint_of(graph: Any) -> str:
    known = getattr(graph, "fingerprint", None)
    return known if isinstance(known, str) else vars(conjoint_data)["fingerprint"](graph)  # before Graph


def benchmark(name: str, **options: Any) -> Any:
    """With everything that a run's fingerprint covers, ids and names of classes too."""
    here = vars(conjoint_data)
    return here.get("load_graph", here["load"])(name, **options)


def split_digest(graph: Any, rule: str, **options: Any) -> str:
    """Of the nodes of all three parts, in their order."""
    split = conjoint.make_split(graph, rule, **options)
    found = hashlib.sha256()
    for part in (split.train, split.val, split.reveal_test()):
        found.update(f"{part.numel()}\n".encode() + part.to(torch.int64).numpy().tobytes())
    return found.hexdigest()


# ---- files


def rows_of(name: str) -> list[Row]:
    with open(RUNS / name, newline="") as file:
        return list(csv.DictReader(file))


EDGES, NODES = rows_of("edges.csv"), rows_of("nodes.csv")


def as_text(rows: list[Row], delimiter: str = ",", header: bool = True) -> str:
    lines = [list(row.values()) for row in rows]
    if header:
        lines.insert(0, list(rows[0]))
    quoted = [[f'"{c}"' if delimiter in c else c for c in line] for line in lines]
    return "".join(delimiter.join(line) + "\n" for line in quoted)


def read(
    folder: Path, edges: list[Row], nodes: list[Row] | None = None, kind: str = "csv", **options: Any
) -> Any:
    """The tables in files of this kind, read back as a graph."""
    files = [folder / f"{name}.{kind}" for name in ("edges", "nodes")]
    for file, rows in zip(files, (edges, nodes), strict=True):
        if rows is None:
            continue
        text = as_text(rows, "\t" if "tsv" in kind else options.get("delimiter") or ",")
        if kind == "parquet":
            pl.DataFrame(rows).with_columns(pl.all().replace("", None)).write_parquet(file)
        elif kind.endswith("gz"):
            file.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            file.write_text(text)
    return read_graph(files[0], None if nodes is None else files[1], **{**THEN, **options})


def renamed(name: Callable[[int], str]) -> tuple[list[Row], list[Row]]:
    """Both tables with other ids."""

    def new(old: str) -> str:
        return name(int(old[1:]))

    edges = [{**row, "source": new(row["source"]), "target": new(row["target"])} for row in EDGES]
    return edges, [{**row, "id": new(row["id"])} for row in NODES]


def repeated() -> list[Row]:
    """Edges of which some come twice, some in both directions and some as loops, each with a weight."""
    back = [
        {**row, "source": row["target"], "target": row["source"], "strength": "0.75"} for row in EDGES[::3]
    ]
    loops = [{**row, "target": row["source"]} for row in EDGES[::20]]
    return [*EDGES, *EDGES[::4], *back, *loops]


def typed_parquet(folder: Path) -> Any:
    edges = pl.DataFrame(EDGES).with_columns(pl.col("strength").cast(pl.Float32))
    nodes = pl.DataFrame(NODES).with_columns(
        pl.col("age", "year").cast(pl.Int32),
        pl.col("score").cast(pl.Float64),
        pl.col("unit").cast(pl.Categorical),
        pl.col("born").str.to_date(),
        pl.col("team", "use").replace("", None),
    )
    edges.write_parquet(folder / "edges.parquet")
    nodes.write_parquet(folder / "nodes.parquet")
    options = {**PLAIN, "weight": "strength"}
    return read_graph(folder / "edges.parquet", folder / "nodes.parquet", **options)


def without_header(folder: Path) -> Any:
    edges, _ = renamed(str)
    (folder / "edges.txt").write_text(as_text(edges, " ", header=False))
    return read_graph(folder / "edges.txt", features="degree:8")


def arrays() -> dict[str, Any]:
    """The graph as plain arrays, with numbers for features."""
    number = {row["id"]: k for k, row in enumerate(NODES)}
    names = sorted({row["team"] for row in NODES if row["team"]})
    part = np.array([row["use"] for row in NODES])
    return {
        "edge_index": np.array([[number[row[end]] for row in EDGES] for end in ("source", "target")]),
        "x": np.array([[float(row["age"]), float(row["score"]), 0.0] for row in NODES], dtype=np.float32),
        "y": np.array([names.index(row["team"]) if row["team"] else -1 for row in NODES]),
        "node_ids": np.array([row["id"] for row in NODES]),
        "class_names": np.array(names),
        "edge_weight": np.array([float(row["strength"]) for row in EDGES]),
        **{name: np.flatnonzero(part == name) for name in ("train", "val", "test")},
    }


def matrix(values: Any = 1.0) -> sp.csr_matrix:
    ends = arrays()["edge_index"]
    weight = np.broadcast_to(np.asarray(values, dtype=np.float64), ends.shape[1:])
    return sp.csr_matrix((weight, (ends[0], ends[1])), shape=(len(NODES), len(NODES)))


def npz(folder: Path) -> Any:
    np.savez(folder / "graph.npz", **arrays())
    return read_graph(folder / "graph.npz")


def npz_in_csr(folder: Path) -> Any:
    held, adjacency = arrays(), matrix()
    x = sp.csr_matrix(held["x"])
    parts: dict[str, Any] = {
        f"{name}_{part}": np.asarray(getattr(matrix_, part))
        for name, matrix_ in (("adj", adjacency), ("attr", x))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez_compressed(folder / "graph.npz", labels=held["y"], **parts)
    return read_graph(folder / "graph.npz")


def graphml(folder: Path) -> Any:
    keys = [f'<key id="{c}" for="node" attr.name="{c}" attr.type="string"/>' for c in ("team", "age", "bio")]
    keys.append('<key id="w" for="edge" attr.name="strength" attr.type="double"/>')
    nodes = [
        f"<node id={quoteattr(row['id'])}>"
        + "".join(f'<data key="{c}">{escape(row[c])}</data>' for c in ("team", "age", "bio") if row[c])
        + "</node>"
        for row in NODES
    ]
    edges = [
        f'<edge source="{row["source"]}" target="{row["target"]}">'
        f'<data key="w">{row["strength"]}</data></edge>'
        for row in EDGES
    ]
    lines = ["<graphml>", *keys, '<graph edgedefault="undirected">', *nodes, *edges, "</graph></graphml>"]
    (folder / "graph.graphml").write_text("\n".join(lines))
    return read_graph(folder / "graph.graphml", text="bio", weight="strength", **LABEL)


def written(folder: Path, nodes: str | None) -> Any:
    """A graph that was read, written and read again."""
    graph = read(folder, EDGES, NODES, weight="strength", **PLAIN)
    if nodes is None:
        write_graph(graph, folder / "again.npz")
        return read_graph(folder / "again.npz")
    write_graph(graph, folder / f"again.{nodes}", folder / f"again-nodes.{nodes}")
    return read_graph(
        folder / f"again.{nodes}", folder / f"again-nodes.{nodes}", standardise=False, weight="weight", **THEN
    )


# ---- graphs that are already in Python


def from_pyg(**more: Any) -> Any:
    held = arrays()
    mask = {f"{part}_mask": torch.zeros(len(NODES), dtype=torch.bool) for part in ("train", "val", "test")}
    for part in ("train", "val", "test"):
        mask[f"{part}_mask"][held[part]] = True
    edges = torch.from_numpy(held["edge_index"])
    return from_any(
        Data(x=torch.from_numpy(held["x"]), edge_index=edges, y=torch.from_numpy(held["y"]), **mask, **more)
    )


def from_scipy(values: Any = 1.0) -> Any:
    held = arrays()
    return from_any(matrix(values), **{name: held[name] for name in ("x", "y", "node_ids")})


def from_networkx() -> Any:
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from((row["id"], {c: row[c] for c in ("team", "age", "unit") if row[c]}) for row in NODES)
    graph.add_edges_from((row["source"], row["target"], {"strength": row["strength"]}) for row in EDGES)
    return from_any(graph, weight="strength", **LABEL)


def numbers(frame: Any) -> Any:
    """A polars table with numbers as numbers."""
    return frame.with_columns(
        pl.col("age", "year").cast(pl.Int64),
        pl.col("score").cast(pl.Float64),
        pl.col("team", "use").replace("", None),
    )


def from_polars() -> Any:
    return from_any(pl.DataFrame(EDGES), numbers(pl.DataFrame(NODES)), **PLAIN)


def from_pandas() -> Any:
    nodes = pd.DataFrame(NODES).replace("", None).astype({"age": "int64", "score": "float64"})
    return from_any(pd.DataFrame(EDGES), nodes, **PLAIN)


LEADING_ZEROS = renamed(lambda k: f"{k:03}")
DATES = renamed(lambda k: f"2001-{1 + k % 12:02}-{1 + k // 12:02}")
WHOLE = renamed(lambda k: str(1000 - 7 * k))
STRAY = [*EDGES, {"source": "n00", "target": "nobody", "strength": "1"}]

OWN: dict[str, Callable[[Path], Any]] = {
    "csv": lambda folder: read(folder, EDGES, NODES, **PLAIN),
    "tsv": lambda folder: read(folder, EDGES, NODES, "tsv", **PLAIN),
    "csv.gz": lambda folder: read(folder, EDGES, NODES, "csv.gz", **PLAIN),
    "tsv.gz": lambda folder: read(folder, EDGES, NODES, "tsv.gz", **PLAIN),
    "parquet": lambda folder: read(folder, EDGES, NODES, "parquet", **PLAIN),
    "parquet, typed": typed_parquet,
    "semicolons": lambda folder: read(folder, EDGES, NODES, delimiter=";", **PLAIN),
    "no header": without_header,
    "weights": lambda folder: read(folder, EDGES, NODES, weight="strength", **PLAIN),
    "repeated edges": lambda folder: read(folder, repeated(), NODES, **PLAIN),
    "repeated edges with weights": lambda folder: read(folder, repeated(), NODES, weight="strength", **PLAIN),
    "all columns": lambda folder: read(folder, EDGES, NODES, split="use", time="year", text="bio", **LABEL),
    "categories": lambda folder: read(
        folder, EDGES, NODES, categorical=["unit", "year"], text="bio", **LABEL
    ),
    "two texts": lambda folder: read(
        folder, EDGES, NODES, text=["bio", "unit"], ignore=["born", "use"], **LABEL
    ),
    "words as a category": lambda folder: read(folder, EDGES, NODES, ignore=["born", "use"], **LABEL),
    "as they are": lambda folder: read(folder, EDGES, NODES, standardise=False, **PLAIN),
    "dense": lambda folder: read(folder, EDGES, NODES, sparse=False, **PLAIN),
    "sparse": lambda folder: read(folder, EDGES, NODES, sparse=True, **PLAIN),
    "no labels": lambda folder: read(
        folder, EDGES, NODES, text="bio", ignore=["team", "born", "use", "year"]
    ),
    "numbers as labels": lambda folder: read(folder, EDGES, NODES, label="year", text="bio", ignore="born"),
    "dates as ids": lambda folder: read(folder, *DATES, **PLAIN),
    "whole numbers as ids": lambda folder: read(folder, *WHOLE, **PLAIN),
    "leading zeros": lambda folder: read(folder, *LEADING_ZEROS, **PLAIN),
    "columns by name": lambda folder: read(
        folder, EDGES, NODES, id="id", source="target", target="source", **PLAIN
    ),
    "unknown ends": lambda folder: read(folder, STRAY, NODES, drop_unknown=True, **PLAIN),
    "degree": lambda folder: read(folder, EDGES, NODES, features="degree:8", **LABEL),
    "edges alone": lambda folder: read(folder, EDGES, features="degree:8"),
    "spectral": lambda folder: read(folder, EDGES, NODES, features="spectral:8", seed=1, **LABEL),
    "npz": npz,
    "npz in CSR": npz_in_csr,
    "graphml": graphml,
    "written as csv": lambda folder: written(folder, "csv"),
    "written as parquet": lambda folder: written(folder, "parquet"),
    "written as npz": lambda folder: written(folder, None),
    "PyG": lambda _: from_pyg(),
    "PyG with weights": lambda _: from_pyg(edge_weight=torch.from_numpy(arrays()["edge_weight"])),
    "PyG with edge_attr": lambda _: from_pyg(edge_attr=torch.from_numpy(arrays()["edge_weight"])[:, None]),
    "SciPy": lambda _: from_scipy(),
    "SciPy with weights": lambda _: from_scipy(arrays()["edge_weight"]),
    "NetworkX": lambda _: from_networkx(),
    "pandas": lambda _: from_pandas(),
    "polars": lambda _: from_polars(),
}

# ---- the benchmarks

BENCHMARKS: dict[str, dict[str, Any]] = {
    "cora": {},
    "citeseer": {},
    "pubmed": {},
    "cora-release": {},
    "citeseer-release": {},
    "pubmed-release": {},
    "coauthor-cs": {},
    "ogbn-arxiv": {"features": "degree:32"},
}
SPLITS: dict[str, dict[str, Any]] = {
    "per-class": {"seed": 0},
    "per-class, seed 1": {"seed": 1},
    "per-class, few": {"seed": 0, "train_per_class": 3, "num_val": 10, "num_test": 20},
    "fraction": {"seed": 0},
    "fraction, seed 1": {"seed": 1},
    "fraction, other shares": {"seed": 0, "train": 0.3, "val": 0.3},
    "public": {},
    "released": {},
    "time": {},
    "time, other years": {"train_until": 2012, "val_until": 2016},
    "given": {},
}


def facebook(root: Path) -> Any:
    folder = root / "other" / "facebook-csv"
    return read_graph(
        folder / "facebook_edges.csv",
        folder / "facebook_target.csv",
        label="page_type",
        text="page_name",
        ignore="facebook_id",
        **THEN,
    )


def other(file: Path) -> Any:
    """A graph as it was published: edges may be directed or come twice, features may be absent."""
    with np.load(file, allow_pickle=False) as held:
        parts = [held[key] for key in ("xd", "xi", "xp")] if "xd" in held else None
        x = None if parts is None else sp.csr_matrix(tuple(parts), shape=tuple(held["xs"]))
        edges, y = torch.from_numpy(held["edges"].astype(np.int64)), held["y"]
    data = Data(edge_index=edges, num_nodes=len(y))
    return from_any(data, x=x, y=y, features=None if x is not None else "degree:16")


def splits_of(graph: Any) -> dict[str, str]:
    """The digest of every split that this graph can have."""
    found = {}
    for name, options in SPLITS.items():
        with contextlib.suppress(InputError):  # not published for this graph, or too few labels
            found[name] = split_digest(graph, name.partition(",")[0], **options)
    return found
