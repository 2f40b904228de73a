"""conjoint embed: the last hidden layer as a table."""

import argparse

import numpy as np

from ..data import write_table
from ..data.write import written_whole
from ..text import clean
from ..training import embed
from .output import TABLES, answer, must_be_writable
from .run_folder import open_run


def work(options: argparse.Namespace) -> None:
    must_be_writable("--out", options.out, (*TABLES, ".npz"))
    opened = open_run(options)
    vectors = embed(opened.model, opened.data, opened.run.config).cpu().numpy()
    ids = opened.data.node_ids
    if options.out.lower().endswith(".npz"):
        with written_whole(options.out) as part, open(part, "wb") as file:
            np.savez(file, ids=ids, embeddings=vectors, allow_pickle=False)
    else:
        write_table(options.out, {"id": ids, **{f"e{k}": column for k, column in enumerate(vectors.T)}})
    nodes, size = vectors.shape
    document = {"run": str(opened.run.path), "out": options.out, "nodes": nodes, "size": size}
    answer(options, document, f"{nodes} vectors of {size} numbers written to {clean(options.out)}")
