"""Planetoid's ind.* files: pickles from 2016, opened only when they are byte for byte the known ones."""

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..benchmark_files import PLANETOID_PARTS
from ..errors import InputError
from ..graph.graph import Graph, build_graph

# SHA-256 of the files at github.com/kimiyoung/planetoid (data/).
KNOWN = {
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
}

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
