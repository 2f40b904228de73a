"""Planetoid's ind.* files: pickles from 2016, opened only when they are byte for byte the known ones."""

import hashlib
import io
import pickle
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..benchmark_files import PLANETOID_PARTS
from ..errors import InputError
from ..graph.graph import Graph, build_graph

# SHA-256 of the raw files by name: those at github.com/kimiyoung/planetoid (data/), and Coauthor CS.
SUMS = files("conjoint.data") / "embedded" / "SHA256SUMS"
KNOWN = {name: sha256 for sha256, name in map(str.split, SUMS.read_text("utf-8").splitlines())}

# The files number the classes; the names follow from the class sizes, which all differ within a graph.
# PubMed's numbering cannot be settled that way, so its classes keep their numbers.
CLASS_NAMES = {
    "cora": (
        "Theory Reinforcement_Learning Genetic_Algorithms Neural_Networks Probabilistic_Methods "
        "Case_Based Rule_Learning"
    ),
    "citeseer": "AI ML IR DB Agents HCI",
    "pubmed": "0 1 2",
}


def read_planetoid(folder: Path, name: str) -> Graph:
    """The graph ``name`` (cora, citeseer, pubmed) from Planetoid's eight files, with its public split."""
    parts = {part: _known_bytes(folder / f"ind.{name}.{part}") for part in PLANETOID_PARTS}
    arrays = {part: _unpickle(raw) for part, raw in parts.items() if part != "test.index"}
    test = np.array(parts["test.index"].split(), dtype=np.int64)
    known = arrays["allx"].shape[0]
    num_nodes = int(test.max()) + 1
    # Row k of tx and ty describes node test[k]; in CiteSeer some numbers are missing from test.
    rows = np.concatenate([np.arange(known), test])
    stacked = sp.vstack([_matrix(arrays["allx"]), _matrix(arrays["tx"])]).tocoo()
    x = sp.csr_matrix((stacked.data, (rows[stacked.row], stacked.col)), shape=(num_nodes, stacked.shape[1]))
    labels = np.full(num_nodes, -1, dtype=np.int64)
    labels[rows] = np.concatenate([arrays["ally"], arrays["ty"]]).argmax(axis=1)
    neighbours: dict[int, list[int]] = arrays["graph"]
    source = np.repeat(np.array(list(neighbours)), [len(ends) for ends in neighbours.values()])
    target = np.concatenate([np.array(ends, dtype=np.int64) for ends in neighbours.values()])
    first = len(arrays["y"])
    notes = []
    absent = num_nodes - len(rows)
    if absent:
        notes.append(f"{absent} nodes appear in the graph only: no words, no label")
    return build_graph(
        source,
        target,
        name=name,
        labels=labels,
        ids=np.arange(num_nodes),
        class_names=CLASS_NAMES[name].split(),
        x=x,
        published={"public": (np.arange(first), np.arange(first, first + 500), test)},
        notes=notes,
    )


def _known_bytes(path: Path) -> bytes:
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != KNOWN[path.name]:
        raise InputError(
            f"{path} is not the file that Planetoid published (SHA-256 differs); it is a pickle and is "
            "not opened. Fetch it again from github.com/kimiyoung/planetoid"
        )
    return raw


def _dtype(name: str, align: int, copy: int) -> np.dtype[Any]:
    # NumPy wants booleans where the old pickles hold 0 and 1.
    return np.dtype(name, align=bool(align), copy=bool(copy))


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("collections", "defaultdict"): lambda factory: {},
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _OldArrays(pickle.Unpickler):
    """Admits the six names that Planetoid's files use and nothing else, even after the hash has matched."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ADMITTED:
            return _ADMITTED[module, name]
        raise InputError(
            f"a Planetoid file asks for {module}.{name}, which such a file never needs; not opened"
        )


def _unpickle(raw: bytes) -> Any:
    return _OldArrays(io.BytesIO(raw), encoding="latin1").load()


def _matrix(old: sp.csr_matrix) -> sp.csr_matrix:
    # Rebuilt, since the object carries the attributes of a SciPy of ten years ago.
    parts: tuple[npt.NDArray[Any], ...] = (old.data, old.indices, old.indptr)
    return sp.csr_matrix(parts, shape=old.shape)
