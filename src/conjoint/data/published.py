"""Benchmarks that come as plain arrays or tables: Coauthor CS, ogbn-arxiv, the authors' release, Cora."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ..benchmark_files import RELEASE_FILES
from ..errors import InputError
from ..graph.graph import Graph, build_graph
from ..graph.splits import CORA_RELEASED
from .npz import csr_from, read_arrays
from .planetoid import CLASS_NAMES
from .read_table import read_bytes

# The .npz holds them as a pickled array, which is not opened; a test reads the same words in its bytes.
COAUTHOR_CLASSES = (
    "bioinformatics machine_learning computer_vision NLP graphics networks security databases data_mining "
    "game_theory HCI information_theory medical_informatics robotics theoretical_cs"
)

# arXiv's cs.* categories in the order of OGB's label numbers.
ARXIV_CODES = (
    "NA MM LO CY CR DC HC CE NI CC AI MA GL NE SC AR CV GR ET SY "
    "CG OH PL SE LG SD SI RO IT PF CL IR MS FL DS OS GT DB DL DM"
)

# The release numbers Cora's subjects by letter; CiteSeer and PubMed as Planetoid does.
RELEASE_CLASSES = {name: words.split() for name, words in CLASS_NAMES.items()}
RELEASE_CLASSES["cora"].sort()


def read_coauthor(folder: Path) -> Graph:
    """Coauthor CS of "Pitfalls of Graph Neural Network Evaluation"; features are keyword counts."""
    path = folder / "ms_academic_cs.npz"
    held = read_arrays(path, skip=("class_names",))
    adjacency = csr_from(held, "adj", str(path)).tocoo()
    return build_graph(
        adjacency.row,
        adjacency.col,
        name="coauthor-cs",
        labels=held["labels"],
        ids=held["node_names"],
        class_names=COAUTHOR_CLASSES.split(),
        x=csr_from(held, "attr", str(path)),
    )


def read_release(folder: Path, name: str) -> Graph:
    """``name`` as the paper's authors released it, with the ranges they trained and tested on."""
    path = folder / RELEASE_FILES[name]
    held = read_arrays(path)
    source, target = held["edges"].T
    return build_graph(
        source,
        target,
        name=name,
        labels=held["y"],
        ids=np.arange(len(held["y"])),
        class_names=RELEASE_CLASSES[name],
        x=csr_from(held, "x", str(path)),
        published={"released": (held["train"], held["valid"], held["test"])},
        notes=["as the paper's authors released it"],
    )


def read_arxiv(folder: Path) -> Graph:
    """ogbn-arxiv from OGB's raw tables; ``x`` is None where node-feat.csv.gz is absent."""
    edges = _table(folder / "raw/edge.csv.gz")
    labels = _table(folder / "raw/node-label.csv.gz")[:, 0]
    features = folder / "raw/node-feat.csv.gz"
    parts = (_table(folder / f"split/time/{part}.csv.gz")[:, 0] for part in ("train", "valid", "test"))
    train, val, test = parts
    return build_graph(
        edges[:, 0],
        edges[:, 1],
        name="ogbn-arxiv",
        labels=labels,
        ids=np.arange(len(labels)),
        class_names=[f"cs.{code}" for code in ARXIV_CODES.split()],
        x=_table(features, number="Float32") if features.is_file() else None,
        node_time=_table(folder / "raw/node_year.csv.gz")[:, 0],
        published={"time": (train, val, test)},
        notes=[] if features.is_file() else [f"{features} is absent: no word features"],
    )


def read_embedded_cora() -> Graph:
    """The Cora that ships inside the package: see embedded/PROVENANCE.txt."""
    with (
        as_file(files("conjoint.data") / "embedded" / "cora.npz") as path,
        np.load(path, allow_pickle=False) as held,
    ):
        arrays = {key: held[key] for key in held.files}
    words = arrays["words"]
    starts = np.concatenate([[0], np.cumsum(arrays["words_per_paper"], dtype=np.int64)])
    papers = len(arrays["paper_ids"])
    x = sp.csr_matrix(
        (np.ones(len(words), dtype=np.float32), words.astype(np.int64), starts),
        shape=(papers, int(arrays["vocabulary_size"])),
    )
    source, target = arrays["citations"].astype(np.int64)
    # The papers stand in the order of the .content file, which the authors' release cuts into ranges.
    train, val, test = (np.arange(*CORA_RELEASED[part]) for part in ("train", "val", "test"))
    return build_graph(
        source,
        target,
        name="cora",
        labels=arrays["subject"].astype(np.int64),
        ids=arrays["paper_ids"].astype(np.int64),
        class_names=arrays["subject_names"].tolist(),
        x=x,
        published={"released": (train, val, test)},
        notes=["the embedded Cora (papers in the order of cora.content)"],
    )


def _table(path: Path, number: str = "Int64") -> npt.NDArray[Any]:
    """A gzipped table of numbers without a header."""
    try:
        frame = pl.read_csv(read_bytes(path), has_header=False).cast(getattr(pl, number))
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path} is not a gzipped table of numbers ({str(error).splitlines()[0]})") from None
    return frame.to_numpy()
