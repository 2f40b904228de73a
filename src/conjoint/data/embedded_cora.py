"""The Cora that ships inside the package: see embedded/PROVENANCE.txt."""

from importlib.resources import as_file, files

import numpy as np
import scipy.sparse as sp

from conjoint.graph.graph import Graph, build_graph
from conjoint.graph.splits import CORA_RELEASED


def read_embedded_cora() -> Graph:
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
