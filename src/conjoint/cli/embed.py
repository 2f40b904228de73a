"""conjoint embed: the last hidden layer as a table."""

import argparse

from .parser import add_output_options, add_run_argument

SUMMARY = "a vector for every node"
DESCRIPTION = """\
Write the embedding of every node: the last hidden layer of the trained network, which
its output layer reads. One row per node: id, then the numbers e0, e1, ... An .npz file
holds two arrays, `ids` and `embeddings`."""

EXAMPLES = """\
examples:
  conjoint embed runs/cora-gated-trust-1 --out embeddings.parquet
  conjoint embed runs/cora-gated-trust-1 --out embeddings.npz
  python -c "import numpy; print(numpy.load('embeddings.npz')['embeddings'].shape)"
"""

KINDS = (".csv", ".tsv", ".parquet", ".npz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("--out", metavar="FILE", required=True, help=f"where to: {', '.join(KINDS)}")
    add_output_options(parser)


def work(options: argparse.Namespace) -> None:
    import numpy as np

    from ..data import write_table
    from ..data.tables import written_whole
    from ..training import embed
    from .files import must_be_writable
    from .reopen import open_run
    from .terminal import clean, print_json

    must_be_writable("--out", options.out, KINDS)
    opened = open_run(options)
    vectors = embed(opened.model, opened.data, opened.run.config).cpu().numpy()
    ids = np.asarray(opened.data.node_ids)
    if options.out.lower().endswith(".npz"):
        with written_whole(options.out) as part, open(part, "wb") as file:
            np.savez(file, ids=ids, embeddings=vectors, allow_pickle=False)
    else:
        write_table(options.out, {"id": ids, **{f"e{k}": vectors[:, k] for k in range(vectors.shape[1])}})
    nodes, size = vectors.shape
    if options.json:
        print_json({"run": str(opened.run.path), "out": options.out, "nodes": nodes, "size": size})
    else:
        print(f"{nodes} vectors of {size} numbers written to {clean(options.out)}")
